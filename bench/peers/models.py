# SPDX-License-Identifier: Apache-2.0
"""The models of inputs/, written once for PyTorch and JAX. `net` is torch_step.Net or jax_step.Net: settings, parameters
named as by `tessera checkpoint export --names pytorch`, with slashes for dots, and `ops`, the operations that differ."""

import re

import numpy as np


def count(net, unit):
    return sum(bool(re.fullmatch(rf"{unit}\d+/weight", name)) for name in net.names)


def activation(net, x):
    return getattr(net.ops, net.settings["activation"])(x)


def norm(net, unit, x):
    scale, epsilon = net.parameter(f"{unit}/weight"), net.settings["norm_epsilon"]
    if net.settings["norm"] == "rms_norm":
        return net.ops.rms_norm(x, scale, epsilon)
    return net.ops.layer_norm(x, scale, net.parameter(f"{unit}/bias"), epsilon)


def chain(net, unit, x):
    """Dense layers unit1, unit2, ... with the activation between them."""
    for number in range(1, count(net, unit) + 1):
        x = net.dense(f"{unit}{number}", activation(net, x) if number > 1 else x)
    return x


def rope_table(settings):
    """Cosines and sines by position and pair of columns, the same for all heads. Empty without rope."""
    if settings.get("positions") != "rope":
        return np.zeros(0, np.float32)
    pairs = settings["width"] // settings["heads"] // 2
    angles = np.outer(np.arange(settings["context"]), settings["rope_theta"] ** (-np.arange(pairs) / pairs))
    return np.stack([np.cos(angles), np.sin(angles)]).astype(np.float32)[:, :, None]


def rotated(net, x):
    (cosine, sine), pairs = net.ops.as_type(net.rope, x), x.shape[-1] // 2
    a, b = x[..., :pairs], x[..., pairs:]
    return net.ops.xp.concatenate([a * cosine - b * sine, b * cosine + a * sine], -1)


def attention(net, block, x):
    def heads_of(unit, heads, parts):
        made = net.dense(f"{block}/{unit}", x).reshape(*x.shape[:2], heads, parts, -1)
        return [made[..., part, :] for part in range(parts)]

    if f"{block}/qkv/weight" in net.names:
        q, k, v = heads_of("qkv", net.settings["heads"], 3)
    else:
        (q,), (k, v) = heads_of("q", net.settings["heads"], 1), heads_of("kv", net.settings["kv_heads"], 2)
        q, k = rotated(net, q), rotated(net, k)
    return net.dense(f"{block}/proj", net.ops.causal_attention(q, k, v).reshape(*x.shape[:2], -1))


def feed_forward(net, block, x):
    hidden, width = net.dense(f"{block}/fc1", x), net.settings["inner_width"]
    if net.settings["feed_forward"] == "gated":  # case.py puts the second factors behind the first
        return net.dense(f"{block}/fc2", activation(net, hidden[..., :width]) * hidden[..., width:])
    return net.dense(f"{block}/fc2", activation(net, hidden))


def transformer(net, tokens, noise):
    h = net.ops.embedding(tokens[..., 0], net.parameter("embedding/weight"))
    if net.settings["positions"] == "learned":
        h = h + net.parameter("embedding/position")
    for number in range(1, count(net, r"block\d+/fc") // 2 + 1):
        block = f"block{number}"
        h = h + attention(net, block, norm(net, f"{block}/ln1", h))
        h = h + feed_forward(net, block, norm(net, f"{block}/ln2", h))
    return net.dense("logits", norm(net, "ln", h))


def vae(net, x, noise):
    h = activation(net, chain(net, "encoder", x))
    mean, logvar = net.dense("mean", h), net.dense("logvar", h)
    return chain(net, "decoder", mean + net.ops.xp.exp(logvar / 2) * noise), mean, logvar


def fno(net, x, noise):
    """Fourier layers as FFTs of which the low modes are kept."""
    xp, n, m = net.ops.xp, net.settings["grid"], net.settings["modes"]
    v, layers = net.dense("lift", x.reshape(len(x), n, n, 3)), count(net, "layer")
    for number in range(1, layers + 1):
        spectrum = xp.fft.rfft2(net.ops.exact(v), None, (1, 2), "forward")
        low = xp.concatenate([spectrum[:, :m, :m], spectrum[:, n - m :, :m]], 1)
        factors = net.ops.exact(net.parameter(f"layer{number}/modes")).reshape(2 * m, m, 2, v.shape[-1], v.shape[-1])
        low = xp.einsum("bkli,klio->bklo", low, net.ops.complex(factors[:, :, 0], factors[:, :, 1]))
        low = xp.concatenate([low[:, :m], xp.zeros_like(spectrum[:, m : n - m, :m]), low[:, m:]], 1)
        v = net.dense(f"layer{number}", v) + xp.fft.irfft2(low, (n, n), (1, 2), "forward")
        v = activation(net, v) if number < layers else v
    return net.dense("output", activation(net, net.dense("projection", v))).reshape(len(x), n * n, 1)


def pinn(net, x, noise):
    """Rows of a sample: u, its two first and its two second derivatives inside, and u on the boundary. They are
    propagated forward, as ours: PyTorch compiles no derivatives of derivatives."""
    xp, layers = net.ops.xp, count(net, "layer")
    for number in range(1, layers + 1):
        x, bias = net.dense(f"layer{number}", x), net.parameter(f"layer{number}/bias")
        u, first, second, boundary = x[:, :1] + bias, x[:, 1:3], x[:, 3:5], x[:, 5:] + bias
        if number < layers:
            u, boundary = activation(net, u), activation(net, boundary)
            slope = 1 - u * u  # of tanh
            first, second = slope * first, slope * (second - 2 * u * first * first)
        x = xp.concatenate([u, first, second, boundary], 1)
    return x


def elbo(net, outputs, y):
    logits, mean, logvar = (net.ops.exact(output) for output in outputs)
    divergence = (mean * mean + net.ops.xp.exp(logvar) - 1 - logvar).sum() / 2
    return (net.ops.bce(logits, y) + net.settings["beta"] * divergence) / len(y)


def relative_l2(net, p, y):
    difference = net.ops.exact(p) - y
    return net.ops.xp.sqrt((difference * difference).sum((1, 2)) / (y * y).sum((1, 2))).mean()


def poisson(net, p, y):
    p = net.ops.exact(p)
    residual, boundary = p[:, 3] + p[:, 4] + y[:, 0], p[:, 5] - y[:, 5]
    return (residual * residual + net.settings["boundary_weight"] * boundary * boundary).mean()


# The prediction and the loss of each kind of model.
MODELS = {
    "mlp": (lambda net, x, noise: chain(net, "layer", x), lambda net, p, y: net.ops.mse(net.ops.exact(p), y)),
    "transformer": (transformer, lambda net, p, y: net.ops.cross_entropy(net.ops.exact(p), y[..., 0])),
    "vae": (vae, elbo),
    "fno": (fno, relative_l2),
    "pinn": (pinn, poisson),
}
