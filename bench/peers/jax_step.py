# SPDX-License-Identifier: Apache-2.0
"""Training steps of a multilayer perceptron in JAX, on one device or with the batch sharded over several. Prints the
seconds of each timed step as JSON."""

import argparse
import json
import os
import time


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", type=int, nargs="+", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--precision", choices=["float32", "bf16"], default="float32")
    parser.add_argument("--devices", type=int, default=1)
    return parser.parse_args()


def make_step(jax, jnp, precision):
    """Adam by hand: the optimizer's state is a pytree of (parameter, m, v), and a count."""
    compute = jnp.bfloat16 if precision == "bf16" else jnp.float32
    rate, beta1, beta2, epsilon = 1e-4, 0.9, 0.999, 1e-8

    def loss(parameters, x, y):
        h = x.astype(compute)
        for number, (kernel, bias) in enumerate(parameters):
            h = h @ kernel.astype(compute) + bias.astype(compute)
            if number + 1 < len(parameters):
                h = jax.nn.relu(h)
        return jnp.mean((h.astype(jnp.float32) - y) ** 2)

    def step(state, x, y):
        parameters, m, v, count = state
        gradients = jax.grad(loss)(parameters, x, y)
        count = count + 1
        m = jax.tree.map(lambda a, g: beta1 * a + (1 - beta1) * g, m, gradients)
        v = jax.tree.map(lambda a, g: beta2 * a + (1 - beta2) * g * g, v, gradients)
        parameters = jax.tree.map(
            lambda p, a, b: p
            - rate * (a / (1 - beta1**count)) / (jnp.sqrt(b / (1 - beta2**count)) + epsilon),
            parameters,
            m,
            v,
        )
        return parameters, m, v, count

    return jax.jit(step, donate_argnums=0)


def time_steps(options):
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec

    mesh = jax.make_mesh((options.devices,), ("data",))
    everywhere, by_rows = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("data",)))
    draw = np.random.default_rng(0)

    def normal(*shape):
        return draw.standard_normal(shape, np.float32)

    parameters = [
        (normal(a, b) / np.sqrt(a), np.zeros(b, np.float32))
        for a, b in zip(options.widths, options.widths[1:])
    ]
    zeros = jax.tree.map(np.zeros_like, parameters)
    state = jax.device_put((parameters, zeros, zeros, np.float32(0)), everywhere)
    x = jax.device_put(normal(options.batch, options.widths[0]), by_rows)
    y = jax.device_put(normal(options.batch, options.widths[-1]), by_rows)
    step = make_step(jax, jnp, options.precision)
    seconds = []
    for _ in range(options.warm_up + options.steps):
        begin = time.perf_counter()
        state = jax.block_until_ready(step(state, x, y))
        seconds.append(time.perf_counter() - begin)
    return {"library": f"JAX {jax.__version__}", "step_seconds": seconds[options.warm_up :]}


def main():
    options = parse()
    # Before JAX is imported: devices of one thread each.
    os.environ["XLA_FLAGS"] = (
        f"--xla_force_host_platform_device_count={options.devices} --xla_cpu_multi_thread_eigen=false"
    )
    os.environ["JAX_PLATFORMS"] = "cpu"
    print(json.dumps(time_steps(options)))


if __name__ == "__main__":
    main()
