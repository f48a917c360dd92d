"""Tests of a file of unittest, or the share of them that tests/at_once.sh asks for in GoogleTest's words."""
import os
import sys
import unittest


def tests_of(suite):
    for one in suite:
        yield from tests_of(one) if isinstance(one, unittest.TestSuite) else [one]


def load_tests(_loader, all_of_file, _pattern):
    tests = list(tests_of(all_of_file))
    share, shares = int(os.environ.get("GTEST_SHARD_INDEX", 0)), int(os.environ.get("GTEST_TOTAL_SHARDS", 1))
    assert share < shares <= len(tests), "%d shares of %d tests" % (shares, len(tests))
    return unittest.TestSuite(tests[share::shares])


def main():
    """What a file calls in place of unittest.main()."""
    sys.modules["__main__"].load_tests = load_tests
    unittest.main(verbosity=2)
