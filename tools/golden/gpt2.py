#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A tiny random GPT-2 of transformers: its files, and what comes out of it.

    gpt2.py FOLDER            writes model.safetensors, config.json and golden.safetensors
    gpt2.py --check FOLDER    loads what `quern export` wrote with from_pretrained and compares it

Needs PyTorch, transformers and safetensors; seen with the versions that golden.safetensors names.

golden.safetensors has a batch ("tokens", "labels"), what the network makes of it ("logits", "loss"),
the gradient of every parameter ("gradient.NAME", dense weights as (out, in)), and the losses of ten
updates of AdamW at the rate 1e-3, where weights of two dimensions decay by 0.01 ("losses").
tests/command/pretrained.c compares.
"""
import sys
from pathlib import Path

import safetensors.torch
import torch
import transformers
from transformers.pytorch_utils import Conv1D

from adamw import losses_of

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden" / "gpt2"
SAMPLES, LENGTH, TOKENS, UPDATES = 2, 16, 64, 10


def network():
    """Every number is random, so that no bias and no norm can be mistaken."""
    config = transformers.GPT2Config(
        vocab_size=TOKENS, n_positions=LENGTH, n_embd=24, n_layer=2, n_head=3, resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)
    net = transformers.GPT2LMHeadModel(config)
    generator = torch.Generator().manual_seed(15)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.normal_(0, 0.2, generator=generator)
            if ".ln_" in name and name.endswith("weight"):
                parameter += 1
    return net


def batch():
    generator = torch.Generator().manual_seed(16)
    return [torch.randint(TOKENS, (SAMPLES, LENGTH), generator=generator) for _ in range(2)]


def loss_of(logits, labels):
    """Each label is that of its own position: transformers would move them by one."""
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def gradients(net):
    turned = {f"{name}.weight" for name, module in net.named_modules() if isinstance(module, Conv1D)}
    return {f"gradient.{name}": (p.grad.T if name in turned else p.grad).contiguous().clone()
            for name, p in net.named_parameters()}


def write(folder):
    net, (tokens, labels) = network(), batch()
    net.save_pretrained(folder)
    logits = net(tokens).logits
    loss = loss_of(logits, labels)
    loss.backward()
    tensors = {"tokens": tokens.int(), "labels": labels.int(), "logits": logits.detach(),
               "loss": loss.detach().reshape(1), **gradients(net)}
    tensors["losses"] = losses_of(net, lambda: loss_of(net(tokens).logits, labels), UPDATES)
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    safetensors.torch.save_file(tensors, folder / "golden.safetensors", versions)
    (folder / "generation_config.json").unlink(missing_ok=True)


def check(folder):
    """The logits of the golden batch; nothing may be missing or too many."""
    net, told = transformers.GPT2LMHeadModel.from_pretrained(folder, output_loading_info=True)
    found = {kind: sorted(names) for kind, names in told.items() if names}
    golden = safetensors.torch.load_file(GOLDEN / "golden.safetensors")
    with torch.no_grad():
        logits = net(golden["tokens"].long()).logits
    apart = (logits - golden["logits"]).abs().max().item()
    print(f"transformers {transformers.__version__}: {found or 'no key missing or unexpected'}; "
          f"largest difference of a logit {apart:g}")
    return 0 if not found and apart == 0 else 1


def main():
    torch.set_num_threads(1)
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        return check(Path(sys.argv[2]))
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    write(Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
