# SPDX-License-Identifier: Apache-2.0
# PythonProtobuf_PYTHON: a Python that has google.protobuf, as the test of execution traces needs.
include(TesseraPython)
tessera_find_python_module(PythonProtobuf google.protobuf)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PythonProtobuf REQUIRED_VARS PythonProtobuf_PYTHON VERSION_VAR PythonProtobuf_VERSION)
