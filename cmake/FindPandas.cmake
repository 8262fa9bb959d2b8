# SPDX-License-Identifier: Apache-2.0
# Pandas_PYTHON: a Python that has pandas and matplotlib, as scripts/study_notebook.py needs.
include(TesseraPython)
tessera_find_python_module(Pandas pandas matplotlib)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Pandas REQUIRED_VARS Pandas_PYTHON VERSION_VAR Pandas_VERSION)
