# SPDX-License-Identifier: Apache-2.0
# Finds PyYAML_PYTHON, a Python that has yaml.
include(TesseraPython)
tessera_find_python_module(PyYAML yaml)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PyYAML REQUIRED_VARS PyYAML_PYTHON VERSION_VAR PyYAML_VERSION)
