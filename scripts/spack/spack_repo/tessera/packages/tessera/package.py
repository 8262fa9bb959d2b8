# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

import os
import re

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Tessera(CMakePackage, CudaPackage):
    """Mini-app for sharded neural-network training on named meshes of MPI ranks. It plans every
    collective call, byte and tensor before a run, and checks the run against that plan."""

    # The checkout of this recipe. Spack builds the last commit of its branch `main`; `spack
    # develop` builds the working tree or another branch. Whoever publishes the package sets the
    # public address here and adds the line that scripts/release.sh prints.
    git = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 6))

    tags = ["proxy-app"]

    license("Apache-2.0")

    version("main", branch="main")

    variant("openmp", default=True, description="Use the OpenMP back end of Kokkos on the host")
    variant(
        "cuda_arch",
        default="none",
        values=("none", *CudaPackage.cuda_arch_values),
        multi=False,
        sticky=True,
        when="+cuda",
        description="CUDA architecture, one because Kokkos is built for one",
    )
    variant("shared", default=False, description="Build a shared library")
    variant("nccl", default=False, description="Send between CUDA devices with NCCL")
    variant(
        "onednn",
        default=False,
        when="~cuda",
        description="Multiply bf16, fp16 and large float32 matrices with oneDNN",
    )
    variant("hdf5", default=False, description="Read data sets from HDF5 files")
    variant("tests", default=False, description="Build the tests")
    variant("benchmarks", default=False, description="Build tessera-bench and tessera-micro")
    variant(
        "report",
        default=False,
        description="Add Python and matplotlib, which tessera-report draws a study's results with",
    )

    conflicts(
        "+nccl", when="~cuda", msg="NCCL sends between CUDA devices: add +cuda cuda_arch=..."
    )
    conflicts(
        "cuda_arch=none",
        when="+cuda",
        msg="Kokkos needs to know the CUDA architecture: add cuda_arch=...",
    )
    for backend in ("rocm", "sycl", "openmptarget"):
        conflicts(
            f"^kokkos+{backend}",
            msg=f"Tessera has no back end for {backend} yet: build Kokkos with ~{backend}",
        )

    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("mpi@3:", type=("build", "link", "run"))

    # The lower bounds are the oldest tested versions.
    with default_args(type=("build", "link")):
        depends_on("kokkos@4.5: +serial cxxstd=20")
        depends_on("kokkos-kernels@4.5: +blas +execspace_serial")
        depends_on("fmt@9:")
        depends_on("nlohmann-json@3.11:")
        depends_on("tomlplusplus@3.3:")
        depends_on("zlib-api")
        depends_on("onednn@2.6:", when="+onednn")
        depends_on("hdf5@1.10:", when="+hdf5")
        # Its counters are not used, and would need libpfm4.
        depends_on("benchmark@1.7: ~performance_counters", when="+benchmarks")
    depends_on("cli11@2.1:", type="build")
    depends_on("googletest@1.12:", type="build", when="+tests")
    with default_args(type="run", when="+report"):
        depends_on("python@3.9:")
        depends_on("py-matplotlib@3.6:")

    with default_args(type=("build", "link")):
        # A second host back end, or one of a device, would become the default one.
        depends_on("kokkos ~threads ~rocm ~sycl ~openmptarget")
        depends_on("kokkos +openmp", when="+openmp")
        depends_on("kokkos ~openmp", when="~openmp")
        depends_on("kokkos-kernels +execspace_openmp", when="+openmp")
        depends_on("kokkos ~cuda", when="~cuda")
        depends_on("kokkos-kernels ~cuda", when="~cuda")
        with when("+cuda"):
            depends_on("kokkos +cuda +wrapper")
            depends_on("kokkos-kernels +cuda +execspace_cuda +memspace_cudaspace +cublas")
            for arch in CudaPackage.cuda_arch_values:
                depends_on(f"kokkos cuda_arch={arch}", when=f"cuda_arch={arch}")
                depends_on(f"kokkos-kernels cuda_arch={arch}", when=f"cuda_arch={arch}")
                depends_on(f"nccl +cuda cuda_arch={arch}", when=f"+nccl cuda_arch={arch}")

    def cmake_args(self):
        args = [
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("TESSERA_ENABLE_NCCL", "nccl"),
            self.define_from_variant("TESSERA_ENABLE_ONEDNN", "onednn"),
            self.define_from_variant("TESSERA_ENABLE_HDF5", "hdf5"),
            self.define_from_variant("TESSERA_BUILD_TESTS", "tests"),
            self.define_from_variant("TESSERA_BUILD_BENCHMARKS", "benchmarks"),
            # Spack's compiler wrapper adds the flags for the target.
            self.define("TESSERA_NATIVE", False),
            self.define("TESSERA_WERROR", False),
            # It would be the system's, if there is one.
            self.define("CMAKE_DISABLE_FIND_PACKAGE_Help2man", True),
        ]
        if self.spec.satisfies("+tests"):
            # These compile each header alone, which is a third of the build and tests no
            # installation.
            args.append(self.define("TESSERA_TEST_HEADERS", False))
        if self.spec.satisfies("+cuda"):
            # This is nvcc_wrapper. Without +cuda it is Spack's compiler.
            args.append(self.define("CMAKE_CXX_COMPILER", self["kokkos"].kokkos_cxx))
            args.append(self.define("CUDAToolkit_ROOT", self.spec["cuda"].prefix))
        if self.spec.satisfies("+nccl"):
            args.append(self.define("NCCL_ROOT", self.spec["nccl"].prefix))
        return args

    @run_after("install")
    def keep_inputs(self):
        cache_extra_test_sources(self, ["inputs"])

    def plan_tutorial(self, inputs):
        """Runs two commands, which need neither MPI nor a device."""
        tessera = Executable(join_path(self.prefix.bin, "tessera"))
        tessera("--version")
        tutorial = join_path(inputs, "tutorial.toml")
        output = tessera("plan", tutorial, output=str.split, error=str.split)
        check_outputs(["Memory per rank", "Calls of rank 0 in a step"], output)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        self.plan_tutorial(join_path(self.stage.source_path, "inputs"))

    def test_plan(self):
        """plan of the tutorial"""
        self.plan_tutorial(join_path(install_test_root(self), "inputs"))

    def test_tutorial(self):
        """loss of the tutorial on two ranks"""
        if self.spec.satisfies("+cuda"):
            raise SkipTest("two ranks need two GPUs")
        mpirun = Executable(join_path(self.spec["mpi"].prefix.bin, "mpirun"))
        # Open MPI 4 and 5 start more ranks than there are cores.
        mpirun.add_default_env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        mpirun.add_default_env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
        mpirun.add_default_env("TESSERA_ALLOW_SHARED_CORES", "1")
        program = join_path(self.prefix.bin, "tessera")
        tutorial = join_path(install_test_root(self), "inputs", "tutorial.toml")
        output = mpirun("-n", "2", program, "run", tutorial, output=str.split, error=str.split)
        for name, golden in (("Initial loss", 20.304867), ("Final loss", 3.199372)):
            found = re.search(rf"{name}: +([0-9.]+)", output)
            assert found and abs(float(found[1]) - golden) <= 1e-5, f"{name} is not {golden}"
        check_outputs(["As planned: +yes"], output)
