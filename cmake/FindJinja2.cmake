# SPDX-License-Identifier: Apache-2.0
# Jinja2_PYTHON: a Python that has jinja2 and matplotlib, as the report needs.
include(TesseraPython)
tessera_find_python_module(Jinja2 jinja2 matplotlib)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Jinja2 REQUIRED_VARS Jinja2_PYTHON VERSION_VAR Jinja2_VERSION)
