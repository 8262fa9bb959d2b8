#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small models of Hugging Face's transformers, and what the library computes with them, for transformers_test.cpp.
usage: make_transformers_fixture.py DIRECTORY NAME, one of llama, qwen3, mixtral, gpt2, gpt2_tied

To make test/checkpoint/transformers again:
  python3 -m venv venv && venv/bin/pip install torch transformers safetensors
  for name in llama qwen3 mixtral gpt2 gpt2_tied; do
    venv/bin/python test/checkpoint/make_transformers_fixture.py test/checkpoint/transformers $name
  done

Each model has a folder with the files that save_pretrained() writes, and expected.safetensors, computed in float64: tokens x and
targets y, logits and mean loss; as "stepped/NAME", parameters minus the gradient of the loss. The files committed are of
transformers 5.24.0 and torch 2.7.1."""
import contextlib
import pathlib
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

SIZES = {"vocab_size": 13, "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 12,
         "max_position_embeddings": 32}
GPT2 = {"vocab_size": 13, "n_embd": 8, "n_head": 2, "n_layer": 2, "n_positions": 32, "n_inner": 12, "bos_token_id": None,
        "eos_token_id": None}
SCALING = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
           "original_max_position_embeddings": 16}
MODELS = {
    "llama": transformers.LlamaConfig(**SIZES | {"hidden_size": 16, "num_attention_heads": 4}, num_key_value_heads=2,
                                      rope_parameters=SCALING),
    "qwen3": transformers.Qwen3Config(**SIZES, num_key_value_heads=2, head_dim=4),
    "mixtral": transformers.MixtralConfig(**SIZES, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2),
    "gpt2": transformers.GPT2Config(**GPT2, tie_word_embeddings=False),
    "gpt2_tied": transformers.GPT2Config(**GPT2),
}
SAMPLES, POSITIONS = 4, 8


def draw(model):
    """Draws all parameters, so that none is 0 or 1 and every function is far from linear. float32 has them exactly."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            middle = 1.0 if "norm" in name or ".ln_" in name and name.endswith("weight") else 0.0
            parameter.copy_(middle + 0.4 * torch.randn(parameter.shape, generator=generator))


@contextlib.contextmanager
def nothing_in_float32():
    """The library computes norms, softmax and angles in float32 whatever the type of the model: not in here."""
    single, method = torch.float32, torch.Tensor.float
    torch.float = torch.float32 = torch.float64
    torch.Tensor.float = torch.Tensor.double
    yield
    torch.float = torch.float32 = single
    torch.Tensor.float = method


def model_of(config, dtype):
    return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="eager").eval()  # no dropout


def write(directory, config):
    single = model_of(config, torch.float32)
    draw(single)
    single.save_pretrained(directory)
    tokens = torch.randint(config.vocab_size, (SAMPLES, POSITIONS + 1), generator=torch.Generator().manual_seed(8))
    x, y = tokens[:, :-1], tokens[:, 1:]
    with nothing_in_float32():
        model = model_of(config, torch.float64)
        model.load_state_dict(single.state_dict())
        logits = model(x).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= parameter.grad
    expected = {"x": x, "y": y, "logits": logits.detach(), "loss": loss.detach().reshape(1)}
    with tempfile.TemporaryDirectory() as stepped:
        model.save_pretrained(stepped)  # with the names that files have
        for name, values in load_file(f"{stepped}/model.safetensors").items():
            expected[f"stepped/{name}"] = values
    (directory / "generation_config.json").unlink(missing_ok=True)
    save_file({name: values.double().contiguous() for name, values in expected.items()}, directory / "expected.safetensors")


write(pathlib.Path(sys.argv[1]) / sys.argv[2], MODELS[sys.argv[2]])
