#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # A study in pandas
# This script opens as a notebook in VS Code, PyCharm and Spyder, and with jupytext in Jupyter. Start it in the repository
# after `source scripts/env.sh`. It needs pandas and matplotlib.

# %% Run the study. Its small variant takes seconds, and its steps are too short to compare; False takes a minute.
import subprocess
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

SMALL = True
results = Path("results/notebook_small" if SMALL else "results/notebook")
if not (results / "cases.csv").exists():
    subprocess.run(["mpirun", "-n", "4", "tessera-bench", "run", "inputs/quick_study.toml", "-o", str(results)]
                   + ["--small"] * SMALL, check=True)

# %% One row per case; bench/RESULTS.md explains the columns.
cases = pd.read_csv(results / "cases.csv").query("status == 'ok'")
print(cases.pivot_table(index="strategy", columns="ranks", values="samples_per_second").round())

# %% Speed, and where the time of a step goes on the most ranks.
figure, (speed, parts) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for strategy, lines in cases.sort_values("ranks").groupby("strategy"):
    speed.plot(lines["ranks"], lines["samples_per_second"], marker="o", label=strategy)
speed.set(xlabel="ranks", ylabel="samples/s", xscale="log", ylim=(0, None), title="quick_study")
speed.set_xticks(sorted(set(cases["ranks"])), sorted(set(cases["ranks"])))
speed.minorticks_off()
speed.legend()
names = ["compute", "communication", "idle", "optimizer", "other"]
most = cases["ranks"].max()
times = 1e6 * cases[cases["ranks"] == most].set_index("strategy")[[f"{name}_seconds" for name in names]]
times.set_axis(names, axis="columns").plot.barh(stacked=True, ax=parts, xlabel="µs per step", title=f"{most} ranks")
parts.legend(loc="upper left", bbox_to_anchor=(1, 1))
figure.savefig(results / "cases.png", dpi=120)
print(f"The figure is in {results / 'cases.png'}")
