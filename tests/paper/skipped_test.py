"""skipped_test.py: a test that was skipped is listed with its reason, whoever skipped it; one that ran is not."""
import pathlib
import sys
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"))
import skipped_tests  # noqa: E402

REPORT = """<testsuite>
<testcase name="app_plan" status="run"><system-out>plan.cpp:1: Skipped
not this one</system-out></testcase>
<testcase name="paper_plans" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>
[ RUN      ] Paper.One
/w/tests/paper/plans_check.cpp:50: Skipped
this build has no cuDNN frontend
[  SKIPPED ] Paper.One (0 ms)
/w/tests/paper/plans_check.cpp:50: Skipped
this build has no cuDNN frontend
[  SKIPPED ] Paper.Two (0 ms)
[  PASSED  ] 0 tests.
</system-out></testcase>
<testcase name="app_slurm" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>looking
skipped: no slurmctld
</system-out></testcase>
<testcase name="mute" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
</testsuite>"""

found = skipped_tests.skipped(xml.etree.ElementTree.fromstring(REPORT))
assert found == [("paper_plans", "this build has no cuDNN frontend"), ("app_slurm", "skipped: no slurmctld"),
                 ("mute", "it does not say why")], found
print("reasons are found")
