# SPDX-License-Identifier: Apache-2.0
"""Tests that goldens.py finds what differs, and only that."""

import contextlib
import io
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import goldens  # noqa: E402
import sections  # noqa: E402
from cases import Case, read_cases, read_shown  # noqa: E402


class Replay:
    """A program that gives these values."""

    def __init__(self, values):
        self.of_cases = values

    def values(self, part, case, texts):
        return self.of_cases[case.id]


def check(before, after, exemptions="", part="runs"):
    """Returns the number of cases that differ, and what is printed."""
    cases = {name: Case(name, "", [], 1, 1e-12) for name in after}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        failed = goldens.check_part(Replay(after), part, cases, before, [], goldens.parse_exemptions(exemptions))
    return failed, printed.getvalue()


PLAN = {"a | data=2 | fsdp | -": {"calls": "0123456789ab 10", "bytes": "0123456789ab 400"}}
MORE = {"a | data=2 | fsdp | -": {"calls": "0123456789ab 10", "bytes": "cdef01234567 500"}}


class Comparison(unittest.TestCase):
    def test_equal_values_pass(self):
        self.assertEqual(check(PLAN, PLAN, part="plans")[0], 0)

    def test_finds_the_section_that_differs(self):
        failed, text = check(PLAN, MORE, part="plans")
        self.assertEqual(failed, 1)
        self.assertIn("plans bytes :: a | data=2 | fsdp | - ::\n#   bytes: 400 -> 500, 1.250 times\n", text)
        self.assertIn("0 of 1 cases equal, 0 exempt, 1 differ; bytes 1", text)

    def test_finds_other_lines_with_the_same_amount(self):
        other = {"a | data=2 | fsdp | -": {**PLAN["a | data=2 | fsdp | -"], "calls": "ffffffffffff 10"}}
        self.assertIn("calls: 10 as before, but other lines", check(PLAN, other, part="plans")[1])

    def test_finds_new_and_lost_sections(self):
        rejected = {"a | data=2 | fsdp | -": {"error": "exit code 1, tessera: error: mesh"}}
        failed, text = check(PLAN, rejected, part="plans")
        self.assertEqual(failed, 1)
        self.assertIn("plans calls,bytes,error :: ", text)
        self.assertIn("error: nothing -> exit code 1, tessera: error: mesh", text)
        self.assertEqual(check({}, PLAN, part="plans")[0], 1)

    def test_exempts_what_a_line_names(self):
        self.assertEqual(check(PLAN, MORE, "plans bytes :: a | * | fsdp | * :: gathers less", "plans")[0], 0)
        for other in ("plans calls :: * :: no", "runs bytes :: * :: no", "plans bytes :: a | * | zero1 | * :: no"):
            self.assertEqual(check(PLAN, MORE, other, "plans")[0], 1)

    def test_rejects_lines_without_a_reason(self):
        for line in ("plans bytes :: *", "plans bytes :: * :: ", "bytes :: * :: why"):
            with self.assertRaises(SystemExit):
                goldens.parse_exemptions(line)

    def test_losses_may_differ_by_rounding(self):
        def run(losses):
            return {"b": {"losses": losses, "memory": "8"}}

        self.assertEqual(check(run("1.0 2.0"), run("1.0000000000000002 2.0"))[0], 0)
        for other in ("1.0 2.00000000001", "1.0", "1.0 nan"):
            self.assertEqual(check(run("1.0 2.0"), run(other))[0], 1)

    def test_meshes_have_one_hash(self):
        values = {"a": {"hash": "01"}, "b": {"hash": "02"}}
        self.assertEqual(check(values, values, part="hashes")[0], 1)
        self.assertEqual(check(values, {"a": {"hash": "01"}, "b": {"hash": "01"}}, "hashes hash :: b :: new", "hashes")[0], 0)


class Sections(unittest.TestCase):
    def test_groups_of_ranks_do_not_matter(self):
        def plan(*groups):
            return {"dtype": "float32", "memory": [{"ranks": ranks, "bytes": {"total": 8}} for ranks in groups]}

        self.assertEqual(sections.memory_lines(plan("0-3")), (["total: 8 on 0-3"], 8))
        self.assertEqual(sections.memory_lines(plan("0,2-3", "1")), sections.memory_lines(plan("0-3")))
        self.assertEqual(sections.by_value({0: 1, 1: 2, 2: 1, 3: 1}), "1 on 0,2-3; 2 on 1")


class Table(unittest.TestCase):
    def test_has_a_golden_for_each_case(self):
        for part, least in (("plans", 40), ("runs", 20), ("hashes", 10)):
            self.assertGreaterEqual(len(read_cases(part)), least)
            self.assertEqual(list(read_cases(part)), list(goldens.read_goldens(part)))
        self.assertEqual({goldens.text_file(name) for name in read_shown()}, set((goldens.HERE / "text").iterdir()))


if __name__ == "__main__":
    unittest.main()
