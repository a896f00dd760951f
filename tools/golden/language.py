#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tiny random networks of transformers, and what comes out of them: two BERTs, a masked language
model and a classifier of sequences, and two Llamas, one with scaled positions. language.py FOLDER
[NAME...] writes NAME.safetensors and NAME.json, weights and config.json of a network, and
NAME-golden.safetensors, of `masked`, `classify`, `llama` and `llama3`.

Needs PyTorch, transformers and safetensors; seen with the versions that the golden files name.

A golden file has a batch ("tokens", "types", "lengths", "labels"), what the network makes of it
("logits", "loss"), the gradient of every parameter ("gradient.NAME") and the losses of ten updates of
AdamW at the rate 1e-3, where weights of two dimensions decay by 0.01 ("losses"). No token is 0: its
row of the table has no gradient in PyTorch. Without "lengths" every token is seen. tests/run/language.c
compares.
"""
import sys
from pathlib import Path

import safetensors.torch
import torch
import transformers

from adamw import losses_of

SAMPLES, LENGTH, TOKENS, CLASSES, UPDATES = 3, 12, 40, 5, 10
SIZES = dict(vocab_size=TOKENS, max_position_embeddings=LENGTH, hidden_size=16,
             num_attention_heads=2, intermediate_size=24, hidden_dropout_prob=0.0,
             attention_probs_dropout_prob=0.0)


def randomise(net, seed):
    """Every number is random, so that no bias and no norm can be mistaken."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.normal_(0, 0.2, generator=generator)
            if name.lower().endswith("norm.weight"):
                parameter += 1
    return net


def numbers(seed, least, most, *shape):
    return torch.randint(least, most, shape, generator=torch.Generator().manual_seed(seed))


def masked():
    """Labels at two tokens of three; whole samples, all of type 0."""
    net = transformers.BertForMaskedLM(transformers.BertConfig(num_hidden_layers=2, **SIZES))
    labels = numbers(3, 0, TOKENS, SAMPLES, LENGTH)
    labels[numbers(4, 0, 3, SAMPLES, LENGTH) == 0] = -100
    return randomise(net, 1), {"tokens": numbers(2, 1, TOKENS, SAMPLES, LENGTH), "labels": labels}


def classify():
    """Samples with padding behind them, of two sentences."""
    config = transformers.BertConfig(num_hidden_layers=1, num_labels=CLASSES, **SIZES)
    net = transformers.BertForSequenceClassification(config)
    batch = {"tokens": numbers(6, 1, TOKENS, SAMPLES, LENGTH),
             "types": (torch.arange(LENGTH) > 4).long().repeat(SAMPLES, 1),
             "lengths": torch.tensor([LENGTH, 7, 9]), "labels": numbers(7, 0, CLASSES, SAMPLES)}
    return randomise(net, 5), batch


def llama(**more):
    """Two heads of queries for one of keys and values; labels at two tokens of three."""
    net = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=TOKENS, max_position_embeddings=LENGTH, hidden_size=32, intermediate_size=24,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-5, **more))
    labels = numbers(10, 0, TOKENS, SAMPLES, LENGTH)
    labels[numbers(11, 0, 3, SAMPLES, LENGTH) == 0] = -100
    return randomise(net, 8), {"tokens": numbers(9, 1, TOKENS, SAMPLES, LENGTH), "labels": labels}


def llama3():
    """Of the four angles one is left, two are between, and one is a quarter of what it was."""
    return llama(rope_theta=10.0, rope_scaling={
        "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 0.4, "high_freq_factor": 1.2,
        "original_max_position_embeddings": 10})


NETWORKS = {"masked": masked, "classify": classify, "llama": llama, "llama3": llama3}


def run(net, batch):
    inputs = {"input_ids": batch["tokens"]}
    if "types" in batch:
        inputs["token_type_ids"] = batch["types"]
    if "lengths" in batch:
        inputs["attention_mask"] = (torch.arange(LENGTH) < batch["lengths"][:, None]).long()
    logits = net(**inputs).logits
    labels = batch["labels"].flatten()
    return logits, torch.nn.functional.cross_entropy(logits.reshape(len(labels), -1), labels)


def write(folder, name, net, batch):
    safetensors.torch.save_model(net, str(folder / f"{name}.safetensors"))
    net.config.architectures = [type(net).__name__]
    net.config.to_json_file(folder / f"{name}.json")
    logits, loss = run(net, batch)
    loss.backward()
    tensors = {key: value.int() for key, value in batch.items()}
    tensors |= {"logits": logits.detach(), "loss": loss.detach().reshape(1)}
    tensors |= {f"gradient.{key}": p.grad.clone() for key, p in net.named_parameters()}
    tensors["losses"] = losses_of(net, lambda: run(net, batch)[1], UPDATES)
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    safetensors.torch.save_file(tensors, folder / f"{name}-golden.safetensors", versions)


def main():
    torch.set_num_threads(1)
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or NETWORKS:
        write(folder, name, *NETWORKS[name]())
    return 0


if __name__ == "__main__":
    sys.exit(main())
