# SPDX-License-Identifier: MIT
"""As much of Quern for Python as its tests need: functions and structs of include/quern by hand, with
nothing beyond the standard library. A call that fails raises an Error of its status and line.
"""
import ctypes
from ctypes import (CDLL, CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char_p, c_double, c_float,
                    c_int, c_int64, c_uint32, c_uint64, c_void_p, sizeof)

VERSION = "0.1.0"  # of the headers that this follows
BATCH = -1
F32 = 1


class Log(Structure):
    _fields_ = [("fn", c_void_p), ("user", c_void_p), ("level", c_int)]


class Tensor(Structure):
    _fields_ = [("id", c_uint32)]


class Shape(Structure):
    _fields_ = [("rank", c_int), ("dim", c_int64 * 6)]


class Optimizer(Structure):
    _fields_ = [("name", c_char_p), ("momentum", c_double), ("nesterov", c_bool),
                ("no_master", c_bool), ("beta1", c_double), ("beta2", c_double), ("eps", c_double), ("ema", c_double)]


class PlanParams(Structure):
    _fields_ = [("budget", c_int64), ("batch", c_int64 * 16), ("micro_batch", c_int64),
                ("recompute", c_int), ("effort", c_int), ("chosen", c_char_p),
                ("variants", c_char_p), ("tuning", c_char_p), ("cache_dir", c_char_p),
                ("optimizer", Optimizer), ("early_updates", c_bool), ("park", c_bool),
                ("norm_groups", c_char_p), ("members", c_int), ("member", c_int),
                ("whole", c_int64 * 16)]


class TrainerParams(Structure):
    _fields_ = [("seed", c_uint64), ("weight_decay", c_double), ("clip", c_double),
                ("poison", c_bool)]


class Metrics(Structure):
    _fields_ = [("valid", c_bool), ("update", c_int64), ("samples", c_int64), ("loss", c_double),
                ("losses", c_double * 8), ("grad_norm", c_double), ("lr", c_double),
                ("skipped", c_bool), ("micro_samples", c_int64), ("micro_norm", c_double)]


Fetch = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int64, c_int64, POINTER(c_float))


class Cycle(Structure):
    _fields_ = [("samples", c_int64), ("lr", c_double), ("fetch", Fetch), ("user", c_void_p),
                ("choose", c_void_p), ("first", c_int64), ("whole", c_int64),
                ("reduce", c_void_p), ("measure_noise", c_bool)]


class WeightsRecord(Structure):
    _fields_ = [("name", c_char_p), ("fate", c_int), ("model", Shape), ("file", Shape)]


WeightsFn = CFUNCTYPE(None, c_void_p, POINTER(WeightsRecord))


class WeightsParams(Structure):
    _fields_ = [("include", c_char_p), ("exclude", c_char_p), ("partial", c_bool),
                ("skip_other_shapes", c_bool), ("fn", WeightsFn), ("user", c_void_p),
                ("layout", c_void_p), ("scope", c_char_p)]


class StructInfo(Structure):
    _fields_ = [("name", c_char_p), ("bytes", c_int64), ("layout", c_uint32)]


# Layouts as QN_STRUCT_LIST of abi.h had them when the classes above were written.
STRUCTS = {
    "qn_log": (Log, 0x37b6e2ab),
    "qn_tensor": (Tensor, 0x701beb85),
    "qn_shape": (Shape, 0x37dab209),
    "qn_optimizer": (Optimizer, 0x40d35f2f),
    "qn_plan_params": (PlanParams, 0x521a5a43),
    "qn_trainer_params": (TrainerParams, 0x51ddebe7),
    "qn_metrics": (Metrics, 0xbf3b5863),
    "qn_cycle": (Cycle, 0x0645f9b8),
    "qn_weights_record": (WeightsRecord, 0x970a2de6),
    "qn_weights_params": (WeightsParams, 0x38795e52),
    "qn_struct_info": (StructInfo, 0x72f3495c),
}
OBJECT = POINTER(c_void_p)
DIMS = POINTER(c_int64)
# name: result (a status where None), arguments
FUNCTIONS = {
    "qn_version": (c_char_p, [POINTER(c_int)]),
    "qn_struct_size": (c_int64, [c_char_p]),
    "qn_abi_compare": (None, [c_char_p, POINTER(StructInfo), c_int]),
    "qn_last_error": (c_char_p, []),
    "qn_status_name": (c_char_p, [c_int]),
    "qn_free": (c_void_p, [c_void_p]),
    "qn_device_open": (None, [OBJECT, c_void_p]),
    "qn_device_close": (c_void_p, [OBJECT]),
    "qn_device_facts": (c_void_p, [c_void_p]),
    "qn_graph_create": (None, [OBJECT, c_void_p]),
    "qn_graph_destroy": (c_void_p, [OBJECT]),
    "qn_graph_status": (None, [c_void_p]),
    "qn_input": (Tensor, [c_void_p, c_char_p, c_int, c_int, DIMS]),
    "qn_parameter": (Tensor, [c_void_p, c_char_p, c_int, DIMS, c_void_p]),
    "qn_linear": (Tensor, [c_void_p, Tensor, Tensor, Tensor]),
    "qn_squared_error": (Tensor, [c_void_p, Tensor, Tensor]),
    "qn_loss": (c_void_p, [c_void_p, Tensor, c_char_p, c_void_p]),
    "qn_plan_create": (None, [OBJECT, c_void_p, c_void_p, POINTER(PlanParams), DIMS]),
    "qn_plan_destroy": (c_void_p, [OBJECT]),
    "qn_plan_text": (c_void_p, [c_void_p]),
    "qn_trainer_open": (None, [OBJECT, c_void_p, c_void_p, POINTER(TrainerParams)]),
    "qn_trainer_close": (c_void_p, [OBJECT]),
    "qn_trainer_step": (None, [c_void_p, POINTER(Cycle), POINTER(Metrics)]),
    "qn_trainer_finish": (None, [c_void_p, POINTER(Metrics)]),
    "qn_trainer_read": (None, [c_void_p, c_char_p, POINTER(c_float), c_int64]),
    "qn_trainer_write": (None, [c_void_p, c_char_p, POINTER(c_float), c_int64]),
    "qn_trainer_load_weights": (None, [c_void_p, c_char_p, POINTER(WeightsParams)]),
    "qn_trainer_save_weights": (None, [c_void_p, c_char_p, POINTER(WeightsParams)]),
}


class Error(Exception):
    def __init__(self, status, line):
        super().__init__(f"{status}: {line}")
        self.status, self.line = status, line


class Library:
    """quern.trainer_step(...) calls qn_trainer_step."""

    def __init__(self, path):
        self.library = CDLL(path)
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(self.library, name)
            function.argtypes = arguments
            function.restype = result or self.status
        self.compare(VERSION, STRUCTS)

    def __getattr__(self, name):
        return getattr(self.library, f"qn_{name}")

    def status(self, code):
        if code:
            raise Error(self.status_name(code).decode(), self.last_error().decode())

    def compare(self, version, structs):
        """Raises unless the library has this version's ABI and these structs."""
        info = [StructInfo(name.encode(), sizeof(kind), layout)
                for name, (kind, layout) in structs.items()]
        self.abi_compare(version.encode(), (StructInfo * len(info))(*info), len(info))

    def text(self, address):
        """A text that the library gave, which is freed."""
        text = ctypes.string_at(address).decode()
        self.free(address)
        return text


def dims(*sizes):
    return (c_int64 * len(sizes))(*sizes)


def new():
    """Where a function leaves an object that it makes."""
    return c_void_p()
