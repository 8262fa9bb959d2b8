# SPDX-License-Identifier: Apache-2.0
"""The Spack recipe, read without Spack: it sets options that CMake has, uses every variant that it declares, and
depends on the packages of cmake/dependencies.txt. usage: spack_recipe.py SOURCE_DIR"""
import ast
import pathlib
import re
import sys

REPO = "scripts/spack/spack_repo/tessera"


def text(node):
    """The source of an expression, that of a string without its quotes."""
    return re.sub(r"^f?(['\"])(.*)\1$", r"\2", ast.unparse(node))


def problems(recipe, cmake, table):
    """recipe: text of package.py; cmake: text of the CMake files; table: text of dependencies.txt."""
    found = []
    package = next(node for node in ast.parse(recipe).body if isinstance(node, ast.ClassDef))
    if [base.id for base in package.bases] != ["CMakePackage", "CudaPackage"]:
        found.append("the package must be a CMakePackage and a CudaPackage")

    def calls(name):
        for node in ast.walk(package):
            if isinstance(node, ast.Call) and name in (getattr(node.func, "id", ""), getattr(node.func, "attr", "")):
                yield [text(part) for part in node.args], {word.arg: text(word.value) for word in node.keywords}

    # An option that CMake does not know would be accepted and ignored.
    declaring = "(?:cmake_dependent_option|tessera_auto_option|option|set)"
    options = set(re.findall(rf"(?:^|\n){declaring}\((TESSERA_[A-Z0-9_]+)", cmake))
    from_variant = {variant: option for (option, variant), _ in calls("define_from_variant")}
    defined = set(from_variant.values()) | {args[0] for args, _ in calls("define")}
    for option in sorted(defined):
        if option.startswith("TESSERA_") and option not in options:
            found.append(f"cmake_args sets {option}, which no CMake file declares")

    # Every variant becomes a CMake option, chooses a dependency, or decides what is installed.
    variants = {args[0]: words for args, words in calls("variant") if args[0] != "cuda_arch"}
    conditions = [words.get("when", "") for name in ("depends_on", "default_args", "patch") for _, words in calls(name)]
    conditions += [args[0] for args, _ in calls("satisfies")]
    for variant, words in variants.items():
        if variant not in from_variant and not any(f"+{variant}" in condition for condition in conditions):
            found.append(f"the variant {variant} is accepted and ignored")
        if variant != "openmp" and words.get("default") != "False":
            found.append(f"the variant {variant} must be off by default")
    for variant in from_variant:
        if variant not in variants:
            found.append(f"cmake_args reads {variant}, which is not a variant")

    # CMake would look for NCCL in vain, or find one that no device can use.
    if not any(args == ["+nccl"] and words.get("when") == "~cuda" for args, words in calls("conflicts")):
        found.append("nccl without cuda must be a conflict")

    rows = [[column.strip() for column in row.split("|")] for row in table.splitlines() if row and row[0] != "#"]
    packages = {row[2] for row in rows if row[2] != "-"}
    packages.add("nccl")  # not in the environment for hosts, so the table has a dash for it
    needed = {re.match("[a-z0-9-]+", args[0])[0] for args, _ in calls("depends_on")} - {"cxx", "python"}
    for name in sorted(packages ^ needed):
        found.append(f"{name} is not both in cmake/dependencies.txt and in the recipe")

    def untyped(node, has_type=False):
        """Yields what depends_on() declares without a type of its own or of default_args() around it."""
        for child in ast.iter_child_nodes(node):
            calls_here = [item.context_expr for item in child.items] if isinstance(child, ast.With) else [child]
            words = [word.arg for call in calls_here if isinstance(call, ast.Call) for word in call.keywords]
            is_dependency = isinstance(child, ast.Call) and getattr(child.func, "id", "") == "depends_on"
            if is_dependency and not has_type and "type" not in words:
                yield text(child.args[0])
            yield from untyped(child, has_type or (isinstance(child, ast.With) and "type" in words))

    for name in untyped(package):
        found.append(f"depends_on {name} has no type")
    for args, _ in calls("depends_on"):
        if re.search(r"@[0-9.]*:[0-9]", args[0]):
            found.append(f"{args[0]} has an upper bound that nobody has seen to be needed")
    # A Kokkos with CUDA would make the GPU the device of a build that was to be without one.
    if not any(args == ["kokkos ~cuda"] and words.get("when") == "~cuda" for args, words in calls("depends_on")):
        found.append("a build ~cuda must exclude a Kokkos with CUDA")
    found += [f"longer than 99 characters: {line}" for line in recipe.splitlines() if len(line) > 99]

    minimum = re.search(r"cmake_minimum_required\(VERSION ([0-9.]+)", cmake)[1]
    if f'"cmake@{minimum}:"' not in recipe:
        found.append(f"the recipe must ask for cmake@{minimum}:, the version of CMakeLists.txt")
    return found


def main(root):
    recipe = (root / REPO / "packages/tessera/package.py").read_text(encoding="utf-8")
    files = [root / "CMakeLists.txt", *sorted((root / "cmake").glob("*.cmake"))]
    cmake = "\n".join(file.read_text(encoding="utf-8") for file in files)
    table = (root / "cmake/dependencies.txt").read_text(encoding="utf-8")
    found = problems(recipe, cmake, table)

    repo = (root / REPO / "repo.yaml").read_text(encoding="utf-8")
    if not re.search(r"^repo:\n  namespace: tessera\n  api: v2\.\d+$", repo, re.MULTILINE):
        found.append("repo.yaml must name the namespace `tessera` and the API")
    environment = (root / "spack.yaml").read_text(encoding="utf-8")
    if f"tessera: $env/{REPO}\n" not in environment:
        found.append(f"spack.yaml must use the repository {REPO}")

    for old, new, expected in [
        ('"TESSERA_BUILD_TESTS"', '"TESSERA_TESTS"', "TESSERA_TESTS, which no CMake file"),
        ('"report",\n', '"docs",\n', "docs is accepted and ignored"),
        ('"tests")', '"test")', "reads test, which is not a variant"),
        ('depends_on("fmt@9:")', "pass", "fmt is not both"),
        ('"fmt@9:"', '"boost"', "boost is not both"),
        ("cmake@3.22:", "cmake@3.16:", "must ask for cmake@"),
        ('when="~cuda"', 'when="~openmp"', "nccl without cuda"),
        ('"benchmarks", default=False', '"benchmarks", default=True', "benchmarks must be off"),
        ('"cli11@2.1:", type="build"', '"cli11@2.1:"', "cli11@2.1: has no type"),
        ("kokkos@4.5:", "kokkos@4.5:5", "has an upper bound"),
        ('depends_on("kokkos ~cuda", when="~cuda")', "pass", "must exclude a Kokkos with CUDA"),
    ]:
        changed = recipe.replace(old, new)
        if old not in recipe or not any(expected in problem for problem in problems(changed, cmake, table)):
            found.append(f"the check does not notice {new} in place of {old}")
    return found


sys.exit("\n".join(main(pathlib.Path(sys.argv[1]))) or None)
