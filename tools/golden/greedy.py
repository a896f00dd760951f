#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/gpt2/greedy.json: how transformers continues some prompts, greedily, up to the
last position, with the network of that folder (gpt2.py).

Usage: greedy.py FOLDER > FOLDER/greedy.json      (needs PyTorch and transformers; seen with 2.15.0 and
                                                   5.23.0)

Each step goes through the whole text again, without a cache. `lead` is the least by which the best
logit was above the second: so far from it rounding decides nothing.
"""
import json
import random
import sys

import torch
import transformers


def follow(model, prompt):
    ids, lead = list(prompt), float('inf')
    while len(ids) < model.config.n_positions:
        with torch.no_grad():
            best = model(torch.tensor([ids])).logits[0, -1].topk(2)
        lead = min(lead, float(best.values[0] - best.values[1]))
        ids.append(int(best.indices[0]))
    return {'prompt': prompt, 'tokens': ids[len(prompt):], 'lead': round(lead, 4)}


def main():
    model = transformers.GPT2LMHeadModel.from_pretrained(sys.argv[1]).eval()
    draw = random.Random(3)
    prompts = [[draw.randrange(model.config.vocab_size) for _ in range(n)] for n in (1, 2, 5, 8)]
    lines = [json.dumps(follow(model, prompt)) for prompt in prompts]
    print('[' + ',\n '.join(lines) + ']')


main()
