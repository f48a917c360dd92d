"""Each fault that a batch job meets, and the tests that let it happen: under mpirun, and where launchers differ under srun. Every job of
theirs has a limit of 60 seconds. This test fails where one that is named here is no more."""
import pathlib
import re
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]

ROWS = {
    "a rank is killed at any step": (
        "app/checkpoints/signals_test.py test_a_rank_that_is_killed_at_any_step_costs_no_bit",
        "app/checkpoints/subnets_test.py test_a_run_killed_ten_times_goes_on_over_other_lanes_stages_and_replicas",
        "app/faults_test.cpp AKilledRankEndsTheJobWithinTenSeconds",
        "app/slurm.sh expect_end kill $? 137 stopped"),
    "a rank is killed at any point of a save": (
        "app/checkpoints/kill_test.py test_in_the_foreground_the_older_or_the_newer_one_loads",
        "app/checkpoints/kill_test.py test_in_the_background_the_older_or_the_newer_one_loads",
        "app/checkpoints/kill_test.py test_a_rank_of_two_and_on_another_grid_afterwards"),
    "SIGUSR1 at any time": (
        "app/checkpoints/signals_test.py test_sigusr1_before_mpi_is_up_and_twice",
        "app/checkpoints/signals_test.py test_sigusr1_during_an_evaluation",
        "app/checkpoints/stops_test.py test_signals_while_a_save_is_under_way",
        "app/checkpoints/subnets_test.py test_a_stop_comes_between_windows_and_the_run_goes_on_elsewhere",
        "app/slurm.sh expect_end usr1 $? 75 stopped"),
    "a rank is stopped": (
        "app/faults_test.cpp AStoppedRankEndsTheJobWith81AndOneSentenceThatNamesIt",
        "app/faults_test.cpp ARankThatStopsWhileTheJobStartsIsNamed",
        "app/faults_test.cpp ARankThatStopsDuringAnEvaluationIsNamed",
        "app/faults_test.cpp ARankThatStopsAtTheEndIsNamed",
        "app/slurm.sh expect_end stop $? 81 failed"),
    "disks that are full, read-only, slow, or fail": (
        "app/checkpoints/disk_test.py test_a_call_that_fails_costs_one_checkpoint_and_nothing_else",
        "app/checkpoints/disk_test.py test_one_rank_of_two_cannot_write",
        "app/checkpoints/disk_test.py test_with_stop_the_run_ends_with_74_and_goes_on_from_the_older_one",
        "app/checkpoints/disk_test.py test_calls_that_are_interrupted_or_do_a_part_lose_nothing",
        "app/checkpoints/disk_test.py test_a_limit_of_a_files_size",
        "app/checkpoints/disk_test.py test_a_file_system_that_is_full",
        "app/slurm.sh expect_end disk $? 74 failed"),
    "checkpoints that are cut, flipped, swapped or gone": (
        "app/checkpoints/damage_test.py test_the_newest_is_named_and_the_next_older_one_is_taken",
        "app/checkpoints/damage_test.py test_where_none_is_whole_a_start_ends_with_80_and_leaves_all_as_it_is",
        "app/checkpoints/manifest_test.py test_what_a_manifest_cannot_say_is_refused"),
    "a gradient that is no number, on one rank": (
        "app/checkpoints/guard_test.py test_all_ranks_skip_the_step_in_which_one_element_of_one_rank_is_no_number",
        "app/checkpoints/guard_test.py test_three_in_a_row_go_back_and_every_start_goes_on_with_the_same_bits",
        "app/checkpoints/guard_test.py test_beyond_the_budget_the_run_ends_with_79",
        "app/guard_mpi_test.cpp ALateDeviceEndsWithTheBitsOfOneThatIsNot"),
    "a bit of one replica": (
        "app/checkpoints/guard_test.py test_a_bit_that_changes_in_one_copy_ends_the_job_and_the_next_start_goes_on",
        "app/checkpoints/guard_test.py test_a_bit_of_what_the_lanes_of_a_supernet_share_is_found",
        "runtime/replicas_mpi_test.cpp ABitOfAValueIsFoundOverDataHoweverTheRestIsSharded",
        "runtime/replicas_mpi_test.cpp WhatNoTensorRankHasAPartOfIsComparedOverThem"),
    "another grid": (
        "app/checkpoints/subnets_test.py test_all_grids_leave_the_same_files",
        "app/checkpoints/stops_test.py test_a_grid_that_does_not_divide_the_checkpoints_shards_is_named_and_not_the_batch"),
    "files that nobody meant": (
        "app/hostile_places_test.py test_each_is_refused_or_passed_over",
        "app/hostile_files_test.cpp OfManyValuesAreReadInATimeAndAMemoryThatFollowTheirBytes"),
    "a grid that cannot be": (
        "app/checkpoints/stops_test.py test_a_grid_that_cannot_be_and_another_binary_are_refused_in_one_sentence",
        "app/slurm.sh a grid that does not fit was not refused in one sentence", ),
    "ranks with other settings or another binary": (
        "app/checkpoints/stops_test.py test_a_grid_that_cannot_be_and_another_binary_are_refused_in_one_sentence",
        "app/faults_test.cpp WhatFailsOnAllRanksIsSaidOnceAndWhatFailsOnOneIsNotLost"),
    "two jobs in one run directory": (
        "app/checkpoints/stops_test.py test_a_directory_in_use_is_refused", ),
}
WAITS = {".py": r"limit=(\d+)", ".sh": r"timeout (\d+) srun", ".cpp": r"holds_within\((\d+)"}


class FaultRows(unittest.TestCase):
    def test_what_is_named_is_there(self):
        for row, named in ROWS.items():
            for each in named:
                with self.subTest(row, named=each):
                    file, _, name = each.partition(" ")
                    text = (TESTS / file).read_text()
                    pattern = {".py": rf"def {name}\(", ".cpp": rf"^TEST(_F)?\(\w+, {name}\)"}.get(pathlib.Path(file).suffix,
                                                                                                   re.escape(name))
                    self.assertTrue(re.search(pattern, text, re.M))

    def test_none_waits_without_end(self):
        for file in ["app/checkpoints/the_run.py"] + sorted({each.split(" ")[0] for named in ROWS.values() for each in named}):
            path = TESTS / file
            waits = re.findall(WAITS[path.suffix], path.read_text())
            self.assertTrue(waits or file not in ("app/checkpoints/the_run.py", "app/slurm.sh", "app/faults_test.cpp"), file)
            self.assertLessEqual(max(map(int, waits), default=0), 60, file)


if __name__ == "__main__":
    unittest.main()
