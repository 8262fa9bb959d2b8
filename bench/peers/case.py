# SPDX-License-Identifier: Apache-2.0
"""What all programs train with: Tessera's settings, its initial weights and its first batch, from the folder that peers.py
makes. And what they have in common: options and output."""

import argparse
import json
import math
import pathlib
import statistics
import sys
import types

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "scripts"), str(ROOT)]  # in the sources, and where they are installed
from npz import arrays_in  # noqa: E402

CHECKED = 2  # steps whose losses are compared


def normal_noise(seed, step, shape):
    """The numbers that Tessera's reparameterize layer draws: threefry2x32 (Salmon et al. 2011), then the inverse of erf."""

    def threefry(key, second):
        words = [*key, key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)]
        x, y = words[0], words[1] + np.asarray(second, np.uint32)
        for group in range(5):
            for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
                x = x + y
                y = (y << np.uint32(turn) | y >> np.uint32(32 - turn)) ^ x
            x, y = x + words[(group + 1) % 3], y + words[(group + 2) % 3] + np.uint32(group + 1)
        return x, y

    with np.errstate(over="ignore"):
        key = threefry(threefry(np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32), 0x6E6F6973), step)
        bits = np.bitwise_xor(*threefry(key, np.arange(math.prod(shape)))) >> np.uint32(9)
    return np.reshape([statistics.NormalDist().inv_cdf((number + 0.25) * 2.0**-23) for number in bits.tolist()], shape)


def load(folder):
    """Returns settings and arrays. Settings of the model's own table are named without it."""
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    rate = float((folder / "learning_rate").read_text(encoding="utf-8"))
    settings = {**results["config"]["training"], **results["config"]["model"], "learning_rate": rate}
    settings = {key.removeprefix(f"{settings['kind']}."): value for key, value in settings.items()}
    weights = {name.replace(".", "/"): array for name, array in arrays_in((folder / "weights").read_bytes()).items()}
    if settings.get("feed_forward") == "gated":  # our columns of both factors alternate; theirs are two halves
        gates = [name for name in weights if name.endswith("fc1/weight")]
        weights |= {name: np.concatenate([weights[name][::2], weights[name][1::2]]) for name in gates}
    x, y = (np.load(folder / f"{name}.npy") for name in "xy")
    if len(x) != settings["batch_size"]:
        raise SystemExit(f"error: a batch of {settings['batch_size']} is more than `tessera run --export` writes")
    if settings["kind"] in ("mlp", "vae"):
        x, y = x[:, 0], y[:, 0]
    noise = None
    if settings["kind"] == "vae":
        noise = [normal_noise(settings["seed"], step, (len(x), settings["latent"])) for step in range(1, CHECKED + 1)]
        noise = np.array(noise, np.float32)
    return types.SimpleNamespace(settings=settings, weights=weights, x=x, y=y, noise=noise, parameters=results["parameters"])


def parser(doc, precisions):
    made = argparse.ArgumentParser(description=doc)
    made.add_argument("--case", type=pathlib.Path, required=True, help="folder of the settings, the weights and the batch")
    made.add_argument("--steps", type=int, required=True)
    made.add_argument("--threads", type=int, default=1)
    made.add_argument("--warm-up", type=int, default=CHECKED + 1)
    made.add_argument("--precision", choices=precisions, default="float32")
    return made


def print_result(library, given, parameters, seconds, losses):
    if parameters != given.parameters:
        raise SystemExit(f"error: the model has {parameters} parameters, ours {given.parameters}")
    print(json.dumps({"library": library, "step_seconds": seconds, "losses": losses[:CHECKED]}), flush=True)
