#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks of the sources as text. Each check also has to find the violations that VIOLATIONS plants for it.

usage: source_checks.py REPOSITORY CHECK

A check takes a tree, the text of each file by its path, and yields what is wrong.
"""
import collections
import os
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath

TOP = {"src", "bench", "test", "inputs", "scripts", "cmake", "CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE",
       "spack.yaml"}
READ = re.compile(r".*\.([ch]pp|md|py|sh|cmake|txt|toml|yaml|yml)|LICENSE")

# The folders that the files of a folder may include, beside their own.
CONFIG = "base random nn optim comm tensor plan data io"
LIBRARY = {
    "base": "", "process": "base", "random": "base", "nn": "base random", "optim": "base random nn", "comm": "base process",
    "io": "base process comm", "data": "base random nn io", "tensor": "base comm", "trace": "base comm tensor",
    "plan": "base random nn optim comm tensor", "config": CONFIG, "predict": f"{CONFIG} config", "engine": f"{CONFIG} config",
    "checkpoint": f"{CONFIG} config engine process", "train": f"{CONFIG} config engine process checkpoint",
    "app": f"{CONFIG} config engine process checkpoint train predict trace",
}
BENCH = {
    "document": "", "study": "document", "measure": "document", "results": "document study measure",
    "run": "document study measure results", "cli": "document study measure results run", "micro": "measure cli", "launches": "",
}
# What plan and predict know of comm: operations and rows of the ledger.
PLAIN_COMM = {f"comm/{name}.hpp" for name in ("operation", "ledger", "scratch", "backend", "comm_options")}


def read_tree(root):
    names = set()
    for scope in ("--cached", "--others --exclude-standard -- " + " ".join((*sorted(TOP), ".github", ".ci"))):
        found = subprocess.run(f"git ls-files {scope}", shell=True, cwd=root, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
        names |= set(found.stdout.splitlines())
    if not names:  # an unpacked archive
        names = {str(path.relative_to(root)) for path in root.rglob("*") if "__pycache__" not in path.parts and path.is_file()}
        names = {name for name in names if not re.match("build|results", name)}
    return {name: (root / name).read_text(errors="replace") if READ.fullmatch(name) else ""
            for name in sorted(names) if (root / name).exists()}


def sources(tree, folder):
    """Yields (name below the folder, text) of its C++ files."""
    for path, text in tree.items():
        if path.startswith(folder + "/") and path.endswith("pp"):
            yield path[len(folder) + 1:], text


def includes_of(text):
    return re.findall(r'^[ \t]*#[ \t]*include[ \t]*([<"][^>"]*[>"])', text, re.MULTILINE)


def layering(tree):
    """The include graphs of src/tessera and of bench run one way."""
    ours, users = {}, collections.defaultdict(list)
    for file, text in sources(tree, "src/tessera"):
        folder = file.split("/")[0]
        if folder not in LIBRARY and file != "tessera.hpp":
            yield f"{file}: the design has no folder src/tessera/{folder}"
            continue
        allowed = {folder, *LIBRARY[folder].split()} if folder in LIBRARY else set(LIBRARY)
        ours[file] = []
        for name in includes_of(text):
            header = re.fullmatch("<tessera/(([^/>]+)/[^>]+)>", name)
            users[name].append(file)
            if name.startswith('"'):
                yield f"{file} includes {name}: headers of the project are included as <tessera/folder/file.hpp>"
            elif header:
                ours[file].append(header[1])
                if header[2] not in allowed:
                    yield f"{file} includes {name}: src/tessera/{folder} must not depend on src/tessera/{header[2]}"
                if "/detail/" in name and file.endswith(".hpp") and "/detail/" not in file:
                    yield f"{file} includes {name}: headers in detail/ are not installed"
            elif name == "<mpi.h>" and folder not in ("process", "comm"):
                yield f"{file} includes <mpi.h>: only src/tessera/process and src/tessera/comm may"
    for name in ("<nccl.h>", "<hdf5.h>"):
        if len(users[name]) > 1:
            yield f"more than one file includes {name}: {users[name]}"
    # Plans and predictions reach no header that includes MPI, a communicator or a View.
    for file in (file for file in ours if re.match("(plan|predict)/", file)):
        todo, seen = [file], set()
        while todo:
            header = todo.pop()
            if header in seen:
                continue
            seen.add(header)
            todo += ours.get(header, [])
            if header.startswith("comm/") and header not in PLAIN_COMM:
                yield f"{file} reaches <tessera/{header}>: plan and predict know no communicator"
            elif header == "base/view.hpp" or header in users["<mpi.h>"]:
                yield f"{file} reaches <tessera/{header}>: plan and predict know neither MPI nor Views"
    for file, text in sources(tree, "bench"):
        folder = file.split("/")[0]
        if folder not in BENCH:
            yield f"bench/{file}: the design has no folder bench/{folder}"
            continue
        for name in (name.strip('"') for name in includes_of(text) if name.startswith('"')):
            if "/" not in name:
                yield f'bench/{file} includes {name}: headers of bench are included as "folder/file.hpp"'
            elif name.split("/")[0] not in {folder, *BENCH[folder].split()}:
                yield f"bench/{file} includes {name}: bench/{folder} must not depend on bench/{name.split('/')[0]}"


def device_facts(tree):
    """Plans and predictions are the same in every build: only kernels, and defaults, read the device of this one."""
    readers = {"nn/device_traits.hpp", "nn/rows.hpp", "nn/layers/embedding.cpp", "nn/layers/expert_slots.hpp",
               "config/to_plan_input.hpp", "predict/machine.hpp"}
    for file, text in sources(tree, "src/tessera"):
        fact = re.search("on_host|this_device|KOKKOS_ENABLE|has_native_tf32", text)
        if fact and re.match("(nn/(layers|models)|nn/[^/]*$|optim|data|plan|config|predict)", file) and file not in readers:
            yield f"{file} reads {fact[0]}: plans know their device by DeviceTraits alone"


def names(tree):
    """No two types of the library and of bench share a name. Nested types, declarations without a body and specialisations
    of templates may repeat one; clang-format leaves only what is inside of namespaces unindented."""
    file_of = {}
    pattern = re.compile(r"^(?:struct|class|union|enum class|enum) +(?:\[\[\w+\]\] +)?(\w+)(?: final)?(?: [{:].*)?$", re.MULTILINE)
    for folder in ("src", "bench"):
        for file, text in sources(tree, folder):
            for name in pattern.findall(text):
                if name in file_of:
                    yield f"{folder}/{file} and {file_of[name]} both define a type {name}"
                file_of[name] = f"{folder}/{file}"


def nvcc_limits(tree):
    """nvcc rejects lambdas for kernels in the bodies of tests, and generic ones anywhere. It declares the == that a friend <=>
    implies, and does not define it: the program does not link unless each use is inlined. Kokkos fills a View with -0 by clearing
    its memory."""
    for file in tree:
        if file.endswith("pp"):
            for line in re.findall("friend .*operator<=>.*", tree[file]):
                yield f"{file}: nvcc needs a member <=>: {line}"
            pattern = "KOKKOS_LAMBDA" if re.fullmatch("test/.*_test.cpp", file) else r"KOKKOS_LAMBDA\([^)]*auto"
            for line in re.findall(f".*{pattern}.*", tree[file]):
                yield f"{file}: nvcc needs a functor in place of a lambda: {line.strip()}"
            for call in re.findall(r"deep_copy\([^;]*-0\.0[^;]*;", tree[file]):
                yield f"{file}: Kokkos copies -0 as +0 on GPUs; use set_minus_zero() in place of {call}"


def dependencies(tree):
    """cmake/dependencies.txt names exactly the packages that CMake looks for and that spack.yaml provides."""
    rows = [re.split(r" *\| *", row) for row in tree["cmake/dependencies.txt"].splitlines() if row and row[0] != "#"]
    packages, table = {row[0] for row in rows} - {"CMake"}, {row[2] for row in rows} - {"-"}
    looked_for = set()
    for file, text in tree.items():
        is_ours = re.fullmatch("CMakeLists.txt|(src|test|bench)/(.*/)?CMakeLists.txt|cmake/.*", file)
        if is_ours and not file.startswith(("test/build/consumer/", "src/examples/")):
            calls = re.findall(r"^[ \t]*(?:find_package|find_dependency|tessera_find_package)\([ \t]*([^ \t)$]+)", text, re.MULTILINE)
            looked_for |= set(calls)
            for name in sorted(set(calls) - packages):
                yield f"{file} looks for {name}, which cmake/dependencies.txt does not name"
    for name in sorted(packages - looked_for):
        yield f"cmake/dependencies.txt names {name}, which no CMake file looks for"
    lines = re.findall("^ +- (.*)", tree["spack.yaml"], re.MULTILINE)
    for line in lines:
        if not re.fullmatch('"[^"]*"', line):  # a colon before a space or at the end would make it a mapping
            yield f"spack.yaml: {line} must be in quotes"
    specs = {re.match("[a-z0-9-]+", spec)[0]: spec for spec in (line.strip('"') for line in lines)}
    for name in sorted(table - set(specs)):
        yield f"spack.yaml lacks {name}"
    for name in sorted(set(specs) - table):
        yield f"spack.yaml has {name}, which cmake/dependencies.txt does not name"
    for name, variant in (("kokkos", "+serial"), ("kokkos", "cxxstd=20"), ("kokkos-kernels", "+blas")):
        if variant not in specs.get(name, "").split():
            yield f"spack.yaml: {name} needs the variant '{variant}'"
    version = re.search(r"cmake_minimum_required\(VERSION ([0-9.]+)", tree["CMakeLists.txt"])[1]
    if f"cmake@{version}:" not in specs.get("cmake", ""):
        yield f"spack.yaml must ask for cmake@{version}:, the version of CMakeLists.txt"


def layout(tree):
    """The top level and src have only the entries of the design, and every folder of src/tessera has a README."""
    top = {path.split("/")[0] for path in tree}
    for entry in sorted(name for name in top - TOP if name[0] != "."):
        yield f"{entry} does not belong at the top level"
    for entry in sorted(TOP - top):
        yield f"{entry} is missing at the top level"
    for path in tree:
        if path.startswith("src/") and path.split("/")[1] not in ("tessera", "examples"):
            yield f"{path} belongs neither to the library nor to the examples"
    for folder in sorted({path.split("/")[2] for path in tree if re.match("src/tessera/[^/]+/", path)}):
        if f"src/tessera/{folder}/README.md" not in tree:
            yield f"src/tessera/{folder} has no README.md"


def citations(tree):
    """Every page that a file cites is there: targets of relative links in Markdown, and names of pages in capitals."""
    folders = {str(parent) for path in tree for parent in PurePosixPath(path).parents}
    # A study writes RESULTS.md; nccl-tests has PERFORMANCE.md.
    pages = {path.split("/")[-1] for path in tree if path.endswith(".md")} | {"RESULTS.md", "PERFORMANCE.md"}
    for file, text in tree.items():
        if file == "test/build/source_checks.py":
            continue
        folder = os.path.dirname(file)
        if file.endswith(".md"):
            prose = "".join(("\n" + text).split("\n```")[::2])
            for target in re.findall(r"\]\(([^()#]+)[^()]*\)", prose):
                path = os.path.normpath(os.path.join(folder, target))
                if not re.match("[a-z]+:", target) and path not in tree and path not in folders:
                    yield f"{file} links to {target}, which does not exist"
        cited = set(re.findall(r"[A-Za-z0-9_./-]*[A-Z]\.md", text))
        cited |= {name + ".md" for name in re.findall(r"([A-Z]{3,})(?:\.md)?,? (?:§|section )", text)}
        for page in sorted(cited):
            places = {os.path.normpath(os.path.join(folder, page)), page} if "/" in page else set()
            if not places & set(tree) and page.split("/")[-1] not in pages:
                yield f"{file} cites {page}, which does not exist"


def scripts(tree):
    """Scripts parse; those that people start are executable and explain themselves; the README names what exists."""
    for file in (file for file in tree if re.fullmatch(r"scripts/[^/]+\.sh|\.ci/run", file)):
        if subprocess.run(["bash", "-n", file]).returncode != 0:
            yield f"{file} does not parse"
        if not os.access(file, os.X_OK):
            yield f"{file} is not executable"
    for name in ("run", "study", "test", "kokkos", "opifex_tutorial", "gpu_check", "site", "release"):
        file = f"scripts/{name}.sh"
        if file in tree:
            shown = subprocess.run(["bash", file, "--help"], stdout=subprocess.PIPE, text=True, timeout=60)
            if shown.returncode != 0 or f"usage: {file}" not in shown.stdout:
                yield f"{file} --help does not explain itself"
    if "```cpp\n" + tree["src/examples/tutorial.cpp"] + "```" not in tree["src/examples/README.md"]:
        yield "src/examples/README.md does not show src/examples/tutorial.cpp as it is"
    for path in sorted(set(re.findall(r"(?:scripts|inputs)/[\w.-]*\w", tree["README.md"]))):
        if not any(file == path or file.startswith(path + "/") for file in tree):
            yield f"README.md names {path}, which does not exist"
    words = len(tree["README.md"].split())
    if words > 1000:
        yield f"README.md has {words} words, more than 1,000"


CHECKS = (layering, device_facts, names, nvcc_limits, dependencies, layout, citations, scripts)
OPTIONS = {"src/a.hpp": "struct Options {", "bench/b.cpp": "struct Options {"}

# What a check must find: its name, a part of what it says ("" for nothing), and either the files of a small tree, or a file of
# this tree, a text in it and what replaces that.
VIOLATIONS = [
    ("layering", "src/tessera/base must not depend on src/tessera/nn", {"src/tessera/base/a.hpp": "#include <tessera/nn/b.hpp>"}),
    ("layering", "nn must not depend on src/tessera/comm", {"src/tessera/nn/a.cpp": "  #  include <tessera/comm/b.hpp>  // hidden"}),
    ("layering", "comm must not depend on src/tessera/train", {"src/tessera/comm/a.cpp": "#include <tessera/train/b.hpp>"}),
    ("layering", "config must not depend on src/tessera/engine", {"src/tessera/config/a.hpp": "#include <tessera/engine/b.hpp>"}),
    ("layering", "tensor/a.cpp includes <mpi.h>", {"src/tessera/tensor/a.cpp": "#include <mpi.h>"}),
    ("layering", "headers in detail/ are not installed", {"src/tessera/comm/a.hpp": "#include <tessera/comm/detail/b.hpp>"}),
    ("layering", "more than one file includes <nccl.h>", dict.fromkeys(("src/tessera/comm/a.cpp", "src/tessera/comm/b.cpp"),
                                                                      "#include <nccl.h>")),
    ("layering", "included as <tessera", {"src/tessera/base/a.cpp": '#include "b.hpp"'}),
    ("layering", "no folder src/tessera/misc", {"src/tessera/misc/a.hpp": ""}),
    ("layering", "plan and predict know neither MPI nor Views", {"src/tessera/plan/a.hpp": "#include <tessera/base/view.hpp>"}),
    ("layering", "plan/a.hpp reaches <tessera/comm/c.hpp>", {"src/tessera/plan/a.hpp": "#include <tessera/tensor/b.hpp>",
                                                            "src/tessera/tensor/b.hpp": "#include <tessera/comm/c.hpp>"}),
    ("layering", "bench/study must not depend on bench/run", {"bench/study/a.cpp": '#include "run/b.hpp"'}),
    ("layering", "headers of bench are included as", {"bench/study/a.cpp": '#include "b.hpp"'}),
    ("layering", "no folder bench/misc", {"bench/misc/a.cpp": ""}),
    ("device_facts", "plan/a.cpp reads this_device", {"src/tessera/plan/a.cpp": "if (this_device == Device::gpu) return 1;"}),
    ("device_facts", "nn/layers/a.cpp reads on_host", {"src/tessera/nn/layers/a.cpp": ".scratch = on_host ? small : large"}),
    *(("names", "both define a type Options", {**OPTIONS, "src/a.hpp": text})
      for text in ("struct Options {", "class Options final : public Base {", "enum class Options : std::uint8_t { a };",
                   "class [[nodiscard]] Options {", "class Options\n    : public Base {")),
    *(("names", "", {**OPTIONS, "src/a.hpp": text})
      for text in ("struct Options;", "struct Options::Part {", "struct Options<int> {", "class Other {\n  struct Options {")),
    ("nvcc_limits", "nvcc needs a functor", {"test/nn/a_test.cpp": "  f(\n    KOKKOS_LAMBDA(int i) {"}),
    ("nvcc_limits", "nvcc needs a functor", {"src/tessera/a.hpp": "KOKKOS_LAMBDA(const auto& team) {"}),
    ("nvcc_limits", "Kokkos copies -0 as +0", {"src/a.cpp": "Kokkos::deep_copy(ExecSpace(),\n  sums, State(-0.0));"}),
    ("nvcc_limits", "nvcc needs a member <=>", {"src/a.hpp": "  friend constexpr auto operator<=>(const A&, const A&) = default;"}),
    ("dependencies", "spack.yaml lacks fmt", "spack.yaml", '- "fmt"', "# fmt"),
    ("dependencies", "spack.yaml has zlib", "spack.yaml", '- "fmt"', '- "zlib"'),
    ("dependencies", "kokkos-kernels needs the variant '+blas'", "spack.yaml", " +blas", ""),
    ("dependencies", "kokkos needs the variant 'cxxstd=20'", "spack.yaml", "cxxstd=20", "cxxstd=17"),
    ("dependencies", "cmake@3.22: must be in quotes", "spack.yaml", '"cmake@3.22:"', "cmake@3.22:"),
    ("dependencies", "must ask for cmake@", "spack.yaml", "cmake@", "cmake@2"),
    ("dependencies", "looks for HDF5", "CMakeLists.txt", "include(FeatureSummary)", "find_package(HDF5 REQUIRED)"),
    ("dependencies", "names Boost, which no CMake file", "cmake/dependencies.txt", "\nNCCL ", "\nBoost | - | - | -\nNCCL "),
    ("layout", "notes does not belong", {"notes/a": ""}),
    ("layout", "LICENSE is missing", {"src/a": ""}),
    ("layout", "src/nn/a.hpp belongs neither", {"src/nn/a.hpp": ""}),
    ("layout", "src/tessera/nn has no README.md", {"src/tessera/nn/a.hpp": ""}),
    ("citations", "a.hpp cites THEORY.md", {"a.hpp": "/// The proof is in THEORY.md, section 2."}),
    ("citations", "a.cpp cites THEORY.md", {"a.cpp": "// THEORY §2: the table"}),
    ("citations", "a.md cites src/THEORY.md", {"a.md": "See src/THEORY.md."}),
    ("citations", "src/a.md links to b/, which", {"src/a.md": "[text](b/)"}),
    ("citations", "links to b.cpp", {"a.md": "[one](a.md)\n```\na[0](code)\n```\n[[text]](b.cpp#line)"}),
    ("citations", "", {"src/a.md": "[here](a.md#part), [there](https://kokkos.org)\n```\na[0](code)\n```\nsrc/README.md",
                       "src/README.md": ""}),
    ("scripts", "does not show src/examples/tutorial.cpp", "src/examples/tutorial.cpp", "int main", "int  main"),
    ("scripts", "names inputs/none.toml", "README.md", "\n", " inputs/none.toml\n"),
    ("scripts", "words, more than 1,000", "README.md", "\n", "\n" + 1000 * "word "),
]


def main(root, name):
    os.chdir(root)
    check = next(check for check in CHECKS if check.__name__ == name)
    tree = read_tree(Path(root))
    if len(tree) < 100:
        sys.exit(f"only {len(tree)} files in {root}")
    problems = list(check(tree))
    for planted, expected, *change in VIOLATIONS:
        if planted != name:
            continue
        if len(change) == 3 and change[1] not in tree[change[0]]:
            problems.append(f"{change[0]} does not contain '{change[1]}'")
        changed = {**tree, change[0]: tree[change[0]].replace(change[1], change[2])} if len(change) == 3 else change[0]
        found = "\n".join(check(changed))
        if expected not in found or (found and not expected):
            problems.append(f"the check must say '{expected}' for {change}, but says '{found}'")
    return "\n".join(problems) or None


sys.exit(main(*sys.argv[1:]))
