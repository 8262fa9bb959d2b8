# SPDX-License-Identifier: Apache-2.0
"""The Spack package of Tessera. The test `spack_recipe` holds it against CMakeLists.txt and cmake/dependencies.txt."""

import os

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Tessera(CMakePackage, CudaPackage):
    """Mini-app for sharded neural-network training on named meshes of MPI ranks. It plans every collective call, byte
    and tensor before a run, and checks the run against that plan."""

    # The checkout of this recipe. Spack builds the last commit of its branch `main`. Use `spack develop` to build the
    # working tree or another branch.
    git = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 6))

    license("Apache-2.0")

    version("main", branch="main")

    variant("openmp", default=True, description="Use the OpenMP back end of Kokkos on the host")
    variant("nccl", default=False, description="Send between CUDA devices with NCCL")
    variant("onednn", default=False, when="~cuda", description="Multiply bf16, fp16 and large float32 matrices with oneDNN")
    variant("hdf5", default=False, description="Write checkpoints with parallel HDF5")
    variant("tests", default=False, description="Build the tests")
    variant("bench", default=False, description="Build tessera-bench and tessera-micro")
    variant("report", default=False, description="Install what tessera-report needs to draw the results of a study")

    conflicts("+nccl", when="~cuda", msg="NCCL sends between CUDA devices: add +cuda cuda_arch=...")
    conflicts("cuda_arch=none", when="+cuda", msg="Kokkos needs to know the CUDA architecture: add cuda_arch=...")

    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("mpi@3:")

    # The lower bounds are the oldest tested versions.
    depends_on("kokkos@4.5:5 +serial cxxstd=20")
    depends_on("kokkos-kernels@4.5:5 +blas +execspace_serial scalars=float,double layouts=right")
    depends_on("fmt@9:")
    depends_on("nlohmann-json@3.11:")
    depends_on("tomlplusplus@3.3:")
    depends_on("cli11@2.1:")
    depends_on("zlib-api")
    depends_on("onednn@2.6:3", when="+onednn")
    depends_on("hdf5@1.10: +mpi", when="+hdf5")
    depends_on("googletest@1.12:", when="+tests")
    # Its counters are not used, and would need libpfm4.
    depends_on("benchmark@1.7: ~performance_counters", when="+bench")
    depends_on("py-matplotlib", type="run", when="+report")

    # A second host back end would become the default one.
    depends_on("kokkos ~threads")
    depends_on("kokkos +openmp", when="+openmp")
    depends_on("kokkos ~openmp", when="~openmp")
    depends_on("kokkos-kernels +execspace_openmp", when="+openmp")

    with when("+cuda"):
        depends_on("kokkos +cuda +wrapper")
        depends_on("kokkos-kernels +cuda +execspace_cuda +memspace_cudaspace +cublas")
        # Kokkos takes one architecture, so Spack rejects two of them.
        for arch in CudaPackage.cuda_arch_values:
            depends_on(f"kokkos cuda_arch={arch}", when=f"cuda_arch={arch}")
            depends_on(f"kokkos-kernels cuda_arch={arch}", when=f"cuda_arch={arch}")
            depends_on(f"nccl +cuda cuda_arch={arch}", when=f"+nccl cuda_arch={arch}")

    def cmake_args(self):
        args = [
            self.define_from_variant("TESSERA_ENABLE_NCCL", "nccl"),
            self.define_from_variant("TESSERA_ENABLE_ONEDNN", "onednn"),
            self.define_from_variant("TESSERA_ENABLE_HDF5", "hdf5"),
            self.define_from_variant("TESSERA_BUILD_TESTS", "tests"),
            self.define_from_variant("TESSERA_BUILD_BENCHMARKS", "bench"),
            # Spack's compiler wrapper adds the flags for the target.
            self.define("TESSERA_NATIVE", False),
            self.define("TESSERA_WERROR", False),
        ]
        if self.spec.satisfies("+tests"):
            # These compile each header alone, which is a third of the build and tests no installation.
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
        output = tessera("plan", join_path(inputs, "tutorial.toml"), output=str.split, error=str.split)
        check_outputs(["Memory per rank", "Calls of rank 0 in a step"], output)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        self.plan_tutorial(join_path(self.stage.source_path, "inputs"))

    def test_plan(self):
        """plan of the tutorial"""
        self.plan_tutorial(join_path(install_test_root(self), "inputs"))
