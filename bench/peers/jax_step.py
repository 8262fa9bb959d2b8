# SPDX-License-Identifier: Apache-2.0
"""Training steps of a model in JAX, on one device or with the batch sharded over several. Prints the seconds of each
timed step as JSON."""

import os
import time
import types

import case
import jax
import jax.numpy as jnp
import models
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def parse():
    parser = case.parser(__doc__, ["float32", "bf16"])
    parser.add_argument("--devices", type=int, default=1)
    return parser.parse_args()


OPERATIONS = types.SimpleNamespace(
    xp=jnp, complex=jax.lax.complex, relu=jax.nn.relu, silu=jax.nn.silu, tanh=jnp.tanh, gelu=jax.nn.gelu,
    exact=lambda x: x.astype(jnp.float32), as_type=lambda table, x: table.astype(x.dtype),
    embedding=lambda numbers, table: table[numbers],
    layer_norm=lambda x, scale, bias, epsilon: jax.nn.standardize(x, epsilon=epsilon) * scale + bias,
    rms_norm=lambda x, scale, epsilon: x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + epsilon) * scale,
    causal_attention=lambda *qkv: jax.nn.dot_product_attention(*qkv, is_causal=True),
    mse=lambda p, y: ((p - y) ** 2).mean(),
    cross_entropy=lambda p, y: -jnp.take_along_axis(jax.nn.log_softmax(p), y[..., None], -1).mean(),
    bce=lambda p, y: (jax.nn.softplus(p) - p * y).sum(),
)  # fmt: skip


class Net:
    """A model of models.py."""

    def __init__(self, weights, settings, compute):
        self.ops, self.settings, self.names = OPERATIONS, settings, list(weights)
        self.weights, self.compute, self.rope = weights, compute, models.rope_table(settings)

    def parameter(self, name):
        return self.weights[name].astype(self.compute)

    def dense(self, unit, x):
        y = x.astype(self.compute) @ self.parameter(f"{unit}/weight")
        has_bias = f"{unit}/bias" in self.names and self.settings["kind"] != "pinn"
        return y + self.parameter(f"{unit}/bias") if has_bias else y


def make_step(settings, precision):
    """Adam by hand: the optimizer's state is a pytree of (parameter, m, v), and a count."""
    compute = jnp.bfloat16 if precision == "bf16" else jnp.float32
    rate, beta1, beta2, epsilon = settings["learning_rate"], 0.9, 0.999, 1e-8
    predict, loss_of = models.MODELS[settings["kind"]]

    def loss(parameters, x, y, noise):
        net = Net(parameters, settings, compute)
        return loss_of(net, predict(net, x, noise), y)

    def step(state, x, y, noise):
        parameters, m, v, count = state
        value, gradients = jax.value_and_grad(loss)(parameters, x, y, noise)
        count = count + 1
        m = jax.tree.map(lambda a, g: beta1 * a + (1 - beta1) * g, m, gradients)
        v = jax.tree.map(lambda a, g: beta2 * a + (1 - beta2) * g * g, v, gradients)
        scale = rate * jnp.sqrt(1 - beta2**count) / (1 - beta1**count)
        root = epsilon * jnp.sqrt(1 - beta2**count)
        parameters = jax.tree.map(lambda p, a, b: p - scale * a / (jnp.sqrt(b) + root), parameters, m, v)
        return (parameters, m, v, count), value

    return jax.jit(step, donate_argnums=0)


def time_steps(options):
    mesh = Mesh(jax.devices(), ("data",))
    everywhere, by_rows = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("data",)))
    given = case.load(options.case)
    # Matrices as (in, out).
    parameters = {name: array.T if name.endswith("/weight") and name != "embedding/weight" else array
                  for name, array in given.weights.items()}  # fmt: skip
    zeros = jax.tree.map(np.zeros_like, parameters)
    state = jax.device_put((parameters, zeros, zeros, np.float32(0)), everywhere)
    numbers = np.int32 if given.settings["loss"] == "cross_entropy" else np.float32
    x, y = (jax.device_put(array.astype(numbers), by_rows) for array in (given.x, given.y))
    noise = None if given.noise is None else [jax.device_put(one, by_rows) for one in given.noise]
    draw = jax.jit(lambda number: jax.random.normal(jax.random.key(number), noise[0].shape), out_shardings=by_rows)
    step = make_step(given.settings, options.precision)
    seconds, losses = [], []
    for number in range(options.warm_up + options.steps):
        begin = time.perf_counter()
        drawn = None if noise is None else noise[number] if number < len(noise) else draw(number)
        state, loss = jax.block_until_ready(step(state, x, y, drawn))
        seconds.append(time.perf_counter() - begin)
        losses.append(float(loss))
    count = sum(array.size for array in parameters.values())
    return f"JAX {jax.__version__}", given, count, seconds[options.warm_up :], losses


def main():
    options = parse()
    # JAX reads this when it starts its devices, of one thread each; a single one may use all cores of the process.
    shares = str(options.threads > 1).lower()
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={options.devices} --xla_cpu_multi_thread_eigen={shares}"
    jax.config.update("jax_platforms", "cpu")
    case.print_result(*time_steps(options))


if __name__ == "__main__":
    main()
