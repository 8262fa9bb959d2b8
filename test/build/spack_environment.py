# SPDX-License-Identifier: Apache-2.0
"""Every spec of spack.yaml is a string, as Spack's schema requires. YAML reads a spec without quotes that has a colon
before a space or at its end as a mapping. usage: spack_environment.py SPACK_YAML"""
import sys

import yaml


def mappings(text):
    return [spec for spec in yaml.safe_load(text)["spack"]["specs"] if not isinstance(spec, str)]


with open(sys.argv[1], encoding="utf-8") as file:
    environment = file.read()
if mappings(environment):
    sys.exit(f"specs that are no strings: {mappings(environment)}")
if len(mappings(environment.replace('"', ""))) < 2:
    sys.exit("the check does not notice specs without quotes")
