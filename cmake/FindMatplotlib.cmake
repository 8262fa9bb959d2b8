# SPDX-License-Identifier: Apache-2.0
# Finds Matplotlib_PYTHON, a Python that has matplotlib.
include(TesseraPython)
tessera_find_python_module(Matplotlib matplotlib)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Matplotlib REQUIRED_VARS Matplotlib_PYTHON VERSION_VAR Matplotlib_VERSION)
