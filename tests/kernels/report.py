#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests tools/gpu_report.py: report.py KERNELS PROGRAMS

What it works out of listings, indices and exceptions, on samples of which the answer is known; then
its gate for one kernel of each family and one chip of each maker whose compiler is here; then the
gate once more for a kernel in which a loop over registers is not unrolled, which must fail. Skipped
(77) after the samples where no compiler is here.
"""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import gpu_report  # noqa: E402
from gpu import amd, banks, iga, listing, nvidia, shares, unit_banks, waves, widths  # noqa: E402
from gpu.exceptions import Exception_, Exceptions  # noqa: E402

# A step of two loads, a barrier and an inner loop that runs 8 times: 2 of its 4 lines multiply,
# and one is there for time to pass.
SASS = """
        .section        .text.sample,"ax",@progbits
        /*0000*/                   MOV R3, RZ ;
.L_x_0:
        /*0010*/                   LDG.E.128 R4, desc[UR4][R8.64] ;
        /*0020*/              @!P2 LDG.E.U16 R4, desc[UR4][R8.64] ;
        /*0030*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0040*/                   MOV R3, RZ ;
.L_x_1:
        /*0050*/                   FFMA R12, R12, R14.reuse, R18 ;
        /*0060*/                   FFMA R13, R12, R14, R18 ;
        /*0068*/              @!UPT UIADD3 URZ, URZ, URZ, URZ ;
        /*0070*/                   IADD3 R3, R3, 0x10, RZ ;
        /*0080*/                   ISETP.NE.AND P1, PT, R3, 0x80, PT ;
        /*0090*/               @P1 BRA `(.L_x_1) ;
        /*00a0*/               @P0 BRA `(.L_x_0) ;
        /*00b0*/                   EXIT ;
"""
GCN = """
sample:                                 ; @sample
; %bb.0:
.LBB0_1:                                ; =>This Loop Header: Depth=1
    global_load_dwordx4 v[0:3], v[4:5], off
    s_barrier
    s_mov_b32 s5, 0
.LBB0_2:                                ;   Parent Loop BB0_1 Depth=1
    v_fma_f32 v14, v18, v33, v14
    v_fmac_f32_e32 v15, v18, v34
    s_addk_i32 s5, 0x110
    s_cmpk_eq_i32 s5, 0x1100
    s_cbranch_scc0 .LBB0_2
; %bb.3:
    s_cbranch_vccnz .LBB0_1
    s_endpgm
; NumVgprs: 45
"""
# A step of 5 lines, of which one is a multiply-add of floats and one that of a matrix unit.
XE = """
L16:
(W)     sync.bar                             null
        sync.nop                             null                             {Compacted,$2.dst}
        send.dc1 (8|M0)          r10      r105    null:0  0x0            0x024060FE           {$8} // wr
        mad (8|M0)               r1.0<1>:f     r2.0<0;0>:f       r3.0<1;0>:f       r4.0<0>:f
        mad (8|M0)               r5.0<1>:d     r6.0<0;0>:d       r3.0<1;0>:uw      0x60:uw
        dpas.8x8 (8|M0)          r26:f         r26:f             r18:hf            r10.0:hf         {$0}
(W&f0.1) jmpi                                 L16
"""


def check_listings():
    """Counted by hand: of a step's 5 lines and 8 or 16 times 5, so many multiply."""
    found = listing.analyse(nvidia.parse(SASS)["sample"], nvidia)
    assert found["inner"] == 40 and found["step"] == round(100 * 16 / 45), found
    assert found["global_loads"] == {16: 1, 128: 1} and not found["local_loads"], found
    found = listing.analyse(amd.parse(GCN)["sample"][0], amd)
    assert found["inner"] == 40 and found["step"] == round(100 * 32 / 84), found
    assert found["global_loads"] == {128: 1}, found
    pair = "    v_dual_fmac_f32 v1, v2, v3 :: v_dual_fmac_f32 v4, v5, v6\n    s_addk_i32"
    found = listing.analyse(amd.parse(GCN.replace("    s_addk_i32", pair))["sample"][0], amd)
    assert found["inner"] == round(100 * 4 / 7), found
    found = listing.analyse(iga.parse(XE), iga)
    assert (found["inner"], found["step"], found["units"]) == (40, 40, 1), found
    one = {"target": "dg2", "family": "matrix units", "program": "p", "kernel": "k", "types": "f16",
           "what": "", "setting": 1, "stack": 0, "spills": 0, "units": 0}
    assert Exceptions([]).faults(one) and not Exceptions([]).faults({**one, "units": 1})


def check_banks(kernels):
    """Known conflicts, that the indices are still those of the kernels, that matrix units for
    attention and convolutions may have 2 ways, not 3, and other settings and programs more; and what
    the empty words of strips are for."""
    for stem in banks.INDICES:
        assert not banks.changed(kernels, stem), (stem, banks.changed(kernels, stem))
    lanes = range(32)
    assert banks.ways([i * 32 for i in lanes], 1) == 32
    assert banks.ways([i * 33 for i in lanes], 1) == 1
    assert banks.ways([i * 4 for i in lanes], 4) == 1
    assert banks.ways([i * 8 for i in lanes], 4) == 2
    assert banks.ways([0 for _ in lanes], 1) == 1
    row = {"target": "gfx90a", "program": "attention_units", "kernel": "k", "types": "f16",
           "what": "", "setting": 0, "banks": {"store": 3}}
    assert banks.faults(row) and not banks.faults({**row, "banks": {"store": 2}})
    assert not banks.faults({**row, "setting": 1}) and not banks.faults({**row, "banks": None})
    assert not banks.faults({**row, "program": "matmul_gpu"})
    assert banks.faults({**row, "program": "conv2d_image_units"})
    for pitch, worst in ((16, 4), (20, 1)):
        strips = unit_banks.Wmma({"TILE_PITCH_A": pitch, "TILE_PITCH_B": pitch, "TILE_DEPTH": 16,
                                  "UNIT_PACK": 2})
        assert all(banks.ways(words, width) == worst for _, words, width in strips.reads())


def check_shares():
    row = {"target": "sm_80", "program": "conv2d_weight_units", "kernel": "k", "types": "bf16",
           "what": "VECTOR_S=8", "setting": 0, "step": 27}
    assert shares.faults(row) and not shares.faults({**row, "step": 28})
    odd = {**row, "what": "VECTOR_S=1"}
    assert not shares.faults(odd) and shares.faults({**odd, "step": 14})
    assert not shares.faults({**odd, "step": 14, "target": "sm_86"})
    product = {**row, "program": "matmul_units", "what": "A_T=0 B_T=1"}
    assert shares.faults({**product, "step": 24}) and not shares.faults({**product, "step": 25})
    assert not shares.faults({**row, "setting": 1}) and not shares.faults({**row, "target": "dg2"})
    floats = {**row, "target": "gfx1030", "program": "conv2d_winograd_gpu", "what": ""}
    assert shares.faults({**floats, "step": 69}) and not shares.faults({**floats, "step": 70})
    assert not shares.faults({**floats, "step": 69, "target": "dg2"})


def check_exceptions():
    """One of 64 bytes lets a stack of 64 pass, not of 68, nor that of another type; and is told
    where nothing needs it."""
    row = {"target": "sm_90", "family": "attention", "program": "p", "kernel": "k", "types": "f16",
           "what": "HEAD=64", "setting": 0, "stack": 64, "spills": 0}
    listed = Exception_("sm_90", "p/k", "f16,HEAD=64", 64, "because")
    exceptions = Exceptions([listed])
    assert exceptions.unused({"sm_90"}) and not exceptions.unused({"dg2"})
    assert not exceptions.faults(row) and not exceptions.unused({"sm_90"})
    assert exceptions.faults({**row, "spills": 4}) and exceptions.faults({**row, "types": "f32"})
    assert not exceptions.faults({**row, "setting": 1, "types": "f32"})
    assert exceptions.faults({**row, "error": "refused"})


def check_widths():
    """A norm must load 128 bits at once; a product, another setting, and what is listed need not;
    and nothing is known without a disassembler."""
    row = {"target": "sm_90", "family": "norms", "program": "p", "kernel": "k", "types": "f16",
           "what": "", "setting": 0, "global_loads": {16: 1, 64: 2}}
    assert widths.faults(row) and not widths.faults({**row, "global_loads": {16: 1, 128: 2}})
    assert not widths.faults({**row, "family": "matrix product"})
    assert not widths.faults({**row, "setting": 1})
    assert not widths.faults({**row, "global_loads": None})
    listed = next(name for name in widths.NARROW if "/" in name).split("/")
    assert not widths.faults({**row, "program": listed[0], "kernel": listed[1]})


def check_waves():
    """Attention with 2 waves fails; with 3, at another setting, or where they are not told, not."""
    row = {"target": "gfx90a", "program": "attention_gpu", "kernel": "k", "types": "f16", "what": "",
           "setting": 0, "waves": 2}
    assert waves.faults(row) and not waves.faults({**row, "waves": 3})
    assert not waves.faults({**row, "setting": 1}) and not waves.faults({**row, "waves": None})
    assert not waves.faults({**row, "program": "matmul_gpu"})


def gate(program, *more, **options):
    return subprocess.run([TOOLS / "gpu_report.py", "--programs", program, "--gate", "--core",
                           *more], check=False, **options)


# FILE: (what is planted in it, in the place of what, the kernel in which the gate must see it). Sums
# that are indexed by a loop that is not unrolled have a stack; vectors whose alignment is not said
# are loaded element by element on one of the chips.
PLANTED = {"lib/tiled.clh": ("#pragma unroll 1", "#pragma unroll", "matmul_gpu"),
           "lib/type.clh": ("#ifdef QN_FORGOTTEN", "#ifdef QN_ALIGNED", "unary")}


def check_gate_fails(kernels, program, file):
    new, old, kernel = PLANTED[file]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "cl_kernels"
        shutil.copytree(kernels, copy)
        path = copy / file
        text = path.read_text()
        planted = text.replace(old, new)
        assert planted != text
        path.write_text(planted)
        failing = gate(program, "--kernel", kernel, "--kernels", copy, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert failing.returncode == 1, f"{file}: the gate passed: {failing.stdout}"


def main():
    kernels, program = map(Path, sys.argv[1:])
    check_listings()
    check_banks(kernels)
    check_exceptions()
    check_waves()
    check_shares()
    check_widths()
    status = gate(program).returncode
    if status == 0:
        check_gate_fails(kernels, program, "lib/tiled.clh")
        gpu_report.find_tools(gpu_report.VENV)
        if not any(nvidia.missing()):
            check_gate_fails(kernels, program, "lib/type.clh")
    return status


if __name__ == "__main__":
    sys.exit(main())
