#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tiny random networks of transformers with PEFT's low-rank adapters, and what comes out of them.
lora.py FOLDER writes into FOLDER/gpt2, FOLDER/llama and FOLDER/bert, a classifier of sequences whose last
layer is trained as a whole,

  model.safetensors, config.json                   the network, as transformers saves it
  adapter_model.safetensors, adapter_config.json   its adapters, as PEFT saves them
  golden.safetensors

Needs PyTorch, transformers, PEFT and safetensors; seen with the versions that the golden files name.

A golden file has a batch ("tokens", "labels"), what network and adapters make of it ("logits",
"loss"), the gradient of all that is trained ("gradient.NAME"), the losses of ten updates of
AdamW at the rate 1e-3 with decay 0.01 ("losses"), and the weights into which PEFT merges the adapters
as they were saved ("merged.NAME"). Without dropout; both matrices of an adapter are random, since
beside a B of zeros the gradient of A is zero. tests/run/lora.c compares.
"""
import sys
from pathlib import Path

import peft
import safetensors.torch
import torch
import transformers

from adamw import losses_of
from language import CLASSES, LENGTH, SAMPLES, SIZES, TOKENS, UPDATES, numbers, randomise, run

GPT2 = transformers.GPT2Config(vocab_size=TOKENS, n_positions=LENGTH, n_embd=16, n_layer=2, n_head=2,
                               embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0, bos_token_id=0,
                               eos_token_id=0)
LLAMA = transformers.LlamaConfig(vocab_size=TOKENS, max_position_embeddings=LENGTH, hidden_size=32,
                                 intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
                                 num_key_value_heads=2, rms_norm_eps=1e-5, bos_token_id=0,
                                 eos_token_id=0)
BERT = transformers.BertConfig(num_hidden_layers=1, num_labels=CLASSES, **SIZES)
NETWORKS = {
    "gpt2": (transformers.GPT2LMHeadModel, GPT2,
             dict(r=3, lora_alpha=5, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True,
                  task_type="CAUSAL_LM")),
    "llama": (transformers.LlamaForCausalLM, LLAMA,
              dict(r=4, lora_alpha=6, target_modules=["q_proj", "v_proj", "down_proj"],
                   task_type="CAUSAL_LM")),
    "bert": (transformers.BertForSequenceClassification, BERT,
             dict(r=2, lora_alpha=4, target_modules=["query", "dense"],
                  modules_to_save=["classifier"], task_type="SEQ_CLS")),
}


def adapted(net, options, seed):
    """The network with adapters of random numbers."""
    config = peft.LoraConfig(lora_dropout=0.0, bias="none", **options)
    net = peft.get_peft_model(net, config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.requires_grad:
                parameter.normal_(0, 0.2, generator=generator)
    return net


def ours(name):
    name = name.removeprefix("base_model.model.").replace(".modules_to_save", "")
    return name.replace(".default.", ".")


def merged_weights(folder, kind, targets):
    """The weights of the layers with adapters, after PEFT merged what `folder` has."""
    net = peft.PeftModel.from_pretrained(kind.from_pretrained(folder), folder).merge_and_unload()
    return {f"merged.{name}": p.detach().contiguous() for name, p in net.named_parameters()
            if name.split(".")[-2] in targets and p.dim() == 2}


def write(folder, seed, kind, config, options):
    folder.mkdir(parents=True, exist_ok=True)
    plain = randomise(kind(config), seed)
    plain.save_pretrained(folder)
    net = adapted(plain, options, seed + 1)
    net.save_pretrained(folder)
    for other in ("README.md", "generation_config.json"):
        (folder / other).unlink(missing_ok=True)
    if options["task_type"] == "SEQ_CLS":
        labels = numbers(seed + 2, 0, CLASSES, SAMPLES)
    else:
        labels = numbers(seed + 2, 0, TOKENS, SAMPLES, LENGTH)
        labels[numbers(seed + 3, 0, 3, SAMPLES, LENGTH) == 0] = -100
    batch = {"tokens": numbers(seed + 4, 1, TOKENS, SAMPLES, LENGTH), "labels": labels}
    logits, loss = run(net, batch)
    loss.backward()
    tensors = {key: value.int() for key, value in batch.items()}
    tensors |= {"logits": logits.detach(), "loss": loss.detach().reshape(1)}
    tensors |= {f"gradient.{ours(name)}": p.grad.clone() for name, p in net.named_parameters()
                if p.requires_grad}
    tensors |= merged_weights(folder, kind, options["target_modules"])
    tensors["losses"] = losses_of(net, lambda: run(net, batch)[1], UPDATES)
    versions = {package.__name__: package.__version__ for package in (torch, transformers, peft)}
    safetensors.torch.save_file(tensors, folder / "golden.safetensors", versions)


def main():
    torch.set_num_threads(1)
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    for seed, (name, network) in enumerate(NETWORKS.items()):
        write(Path(sys.argv[1]) / name, 10 * seed + 20, *network)
    return 0


if __name__ == "__main__":
    sys.exit(main())
