# SPDX-License-Identifier: Apache-2.0
"""Checks and measures Tessera on one GPU, and writes gpu_check.json and gpu_check.log; both keep the parts of earlier runs. A
part that fails does not stop the others, and says how to go on. Ends with 1 if a part has failed or has run out of time."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import parts

HERE = pathlib.Path(__file__).resolve()
IS_PACKED = (HERE.parents[1] / "inputs").exists()
ROOT = HERE.parents[1] if IS_PACKED else HERE.parents[2]  # share/tessera of a package, or a checkout
# Where machines have the libraries that a package leaves to them, beside the places that the linker knows.
LIBRARIES = ["/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib", "/usr/local/nvidia/lib*"]
LIBRARIES += [f"{path}/nvidia/*/lib" for path in sys.path if path.endswith("-packages")]
ON = ["TESSERA_ALLOW_SHARED_GPU", "TESSERA_ALLOW_SHARED_CORES", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
      "OMPI_MCA_rmaps_base_oversubscribe", "OMPI_MCA_mpi_yield_when_idle"]  # fmt: skip
NONE = ["TESSERA_PROGRESS", "OMPI_MCA_hwloc_base_binding_policy", "OMPI_MCA_btl_vader_single_copy_mechanism"]


class Kit:
    """The programs, their environment, and the log of all commands."""

    def __init__(self, options):
        self.bin, self.out, self.small = options.bin.resolve(), options.output.resolve(), options.small
        self.inputs, self.peers = ROOT / "inputs", ROOT / "bench/peers/peers.py"
        self.out.mkdir(parents=True, exist_ok=True)
        self.log = open(self.out / "gpu_check.log", "a", encoding="utf-8")
        self.lock, self.ends = threading.Lock(), {}  # ends: of the part that a thread runs
        self.env = {**os.environ, **dict.fromkeys(ON, "1"), **dict.fromkeys(NONE, "none"), "GTEST_COLOR": "no"}
        self.env["PATH"] += ":/usr/local/cuda/bin"

    def find_libraries(self):
        """Lets programs find the libraries that the dynamic linker does not find, and returns their folders."""
        said = subprocess.run(["ldd", self.bin / "tessera"], capture_output=True, text=True, env=self.env).stdout
        wanted = re.findall(r"(\S+) => not found", said) + ["libcuda.so.1"]  # the driver is loaded later
        folders = [str(f) for pattern in LIBRARIES for f in sorted(pathlib.Path("/").glob(pattern[1:]), reverse=True)]
        found = {name: next((f for f in folders if os.path.exists(f"{f}/{name}")), None) for name in wanted}
        self.env["LD_LIBRARY_PATH"] = ":".join(filter(None, [self.env.get("LD_LIBRARY_PATH"), *dict.fromkeys(found.values())]))
        missing = [name for name in wanted[:-1] if not found[name]]
        if missing:
            raise parts.Ended(f"this machine has no {', '.join(missing)}; add the folder to LD_LIBRARY_PATH", found)
        return found

    def describe(self):
        """What this machine is. Sets backend and on_gpu."""
        libraries, info = self.find_libraries(), self.mpi(1, "tessera", "info")
        self.backend = re.search(r"^kokkos\.backend: *(\w+)", info, re.M)[1]
        self.on_gpu = self.backend == "Cuda"
        query = "nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.memory,compute_mode --format=csv"
        gpu = self.run("sh", "-c", f"{query} || true").splitlines()
        return {"system": platform.platform(), "cores": os.cpu_count(), "libraries": libraries, "gpu": gpu, "info": info.splitlines()}

    def needs(self, *programs, gpu=False):
        reasons = [f"there is no {program}" for program in programs if not shutil.which(program, path=self.env["PATH"])]
        if gpu and not self.on_gpu:
            reasons.insert(0, f"Tessera computes with {self.backend}, not on a GPU")
        if reasons:
            raise parts.Ended(reasons[0], status="skipped")

    def has_torch(self):
        return "True" in self.run("python3", "-c", "import torch; print(torch.cuda.is_available())", allowed=(0, 1))

    def mpi(self, ranks, program, *arguments, before=(), **how):
        self.needs(self.bin / program)
        return self.run("mpirun", "-n", ranks, *before, self.bin / program, *arguments, **how)

    def run(self, *command, env=None, allowed=(0,)):
        """Runs a command within the limit of the part and returns its output, which the log keeps."""
        command = [*map(str, command)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                   env={**self.env, **(env or {})}, cwd=self.out, start_new_session=True)  # fmt: skip
        left = max(self.ends[threading.get_ident()] - time.monotonic(), 0.1)
        for seconds, ending in ((left, signal.SIGTERM), (5, signal.SIGKILL), (None, None)):
            try:
                said, code = process.communicate(timeout=seconds)[0], process.returncode if ending == signal.SIGTERM else "out of time"
                break
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, ending)  # mpirun passes SIGTERM on to its ranks
        with self.lock:
            self.log.write(f"$ {' '.join(command)}\n{said}[{code}]\n\n")
            self.log.flush()
        if code not in allowed:
            lines = said.strip().splitlines()
            why = " | ".join([line for line in lines if "error" in line.lower()][:3] or lines[-4:])
            status = "timeout" if code == "out of time" else "failed"
            raise parts.Ended(f"{pathlib.Path(command[0]).name} ended with {code}: {why[:600]}", parts.tests_in(said), status)
        return said


def run_part(kit, part, end, planted):
    begin = time.monotonic()
    row = {"name": part.name, "status": "ok", "reason": None, "limit_seconds": part.seconds, "seconds": 0, "result": None}
    kit.ends[threading.get_ident()] = min(begin + part.seconds, end)
    try:
        if end - begin < 2:
            raise parts.Ended(NO_TIME, status="skipped")
        if part.name == planted:
            raise parts.Ended("planted by --inject")
        row["result"] = part.work(kit)
    except Exception as why:  # whatever happened, the next part goes on
        row.update(status=getattr(why, "status", "failed"), reason=str(why) or repr(why), result=getattr(why, "partial", None))
    row["seconds"] = round(time.monotonic() - begin, 2)
    print(f"{row['name']:<16} {row['status']:<8} {row['seconds']:6.1f} s  {row['reason'] or ''}", flush=True)
    if row["status"] in ("failed", "timeout"):
        print(f"  next: read {kit.out / 'gpu_check.log'}, mend it, then gpu_check.sh --only {part.name}", flush=True)
    return row


NO_TIME = "no time is left for it"


def left(rows):
    """Returns the parts that have not passed yet, and may."""
    passed = {row["name"] for row in rows if row["status"] == "ok" or (row["status"] == "skipped" and row["reason"] != NO_TIME)}
    return [part.name for part in parts.PARTS if part.name not in passed]


def parse():
    names, first = ([part.name for part in parts.PARTS if part.is_first or every] for every in (True, False))
    programs = ROOT.parents[1] / "bin" if IS_PACKED else ROOT / "build/cuda/bin"
    parser = argparse.ArgumentParser(prog="scripts/gpu_check.sh", description=__doc__, epilog=f"Parts: {', '.join(names)}",
                                     allow_abbrev=False)  # fmt: skip
    parser.add_argument("--bin", type=pathlib.Path, default=programs, help="folder of the programs (of this package, or build/cuda/bin)")
    parser.add_argument("-o", "--output", type=pathlib.Path, default="gpu_check", help="folder for all files (gpu_check)")
    parser.add_argument("--seconds", type=float, help="limit for all parts together (530; 90 with --first)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--first", action="store_true", help="only ask in 90 s whether it works at all: " + ", ".join(first))
    which.add_argument("--only", nargs="+", choices=names, metavar="PART", help="run these parts; all without this option")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that everything runs, also without a GPU")
    parser.add_argument("--inject", choices=names, metavar="PART", help="for testing: make this part fail")
    options = parser.parse_args()
    options.seconds = options.seconds if options.seconds is not None else 90 if options.first else 530
    options.only = options.only or (first if options.first else names)
    if not (options.bin / "tessera").exists():
        raise SystemExit(f"error: --bin {options.bin}: has no program tessera")
    return options


def main():
    options, begin = parse(), time.monotonic()
    kit, end = Kit(options), begin + options.seconds
    document = {"schema_version": 1, "begin": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "small": options.small, "parts": []}
    file, now = kit.out / "gpu_check.json", []
    if file.exists():
        earlier = json.loads(file.read_text(encoding="utf-8"))
        document["parts"] = earlier["parts"] if earlier["small"] == options.small else []

    def run(part):
        return run_part(kit, part, end, options.inject)

    def keep(row):
        now.append(row)
        rows = {each["name"]: each for each in [*document["parts"], row]}
        document["parts"] = [rows[part.name] for part in parts.PARTS if part.name in rows]
        document["seconds"] = round(time.monotonic() - begin, 1)
        document["passed"] = all(each["status"] in ("ok", "skipped") for each in now)
        file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    keep(run(parts.PARTS[0]))  # what the machine is; others need it
    chosen = [part for part in parts.PARTS[1:] if part.name in options.only] if document["passed"] else []
    with concurrent.futures.ThreadPoolExecutor(1 if options.small else len(chosen) + 1) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, part) for part in chosen if not part.measures]):
            keep(done.result())
    for part in (part for part in chosen if part.measures):
        keep(run(part))
    print(f"{file}: {'every part that ran has passed' if document['passed'] else 'not every part has passed'}")
    print(f"next: gpu_check.sh --only {' '.join(left(document['parts']))}" if left(document["parts"]) else "next: nothing is left")
    return 0 if document["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
