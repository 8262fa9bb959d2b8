# SPDX-License-Identifier: Apache-2.0
"""The report on the results of a study of tessera-bench; scripts/report.py is its command."""
