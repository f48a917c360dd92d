# thorough
"""Damaged checkpoints: found and named, and a start takes the next older one, or ends with 80 when there is
none."""
import os
import shutil

from the_run import STEPS, Runs, main


def cut(length_of):
    def damage(checkpoint):
        os.truncate(checkpoint / "state.h5", length_of((checkpoint / "state.h5").stat().st_size))
    return damage


def flip(name, place):
    def damage(checkpoint):
        content = bytearray((checkpoint / name).read_bytes())
        content[int(place * (len(content) - 1))] ^= 16
        (checkpoint / name).write_bytes(content)
    return damage


def swap_files(checkpoint):
    older = checkpoint.parent / "step-00000006"
    for name in ("state.h5", "swapped"):
        os.rename(checkpoint / name if name == "state.h5" else older / "state.h5",
                  checkpoint / ("swapped" if name == "state.h5" else "state.h5"))
    os.rename(checkpoint / "swapped", older / "state.h5")


def swap_places(checkpoint):
    older, aside = checkpoint.parent / "step-00000006", checkpoint.parent / "aside"
    checkpoint.rename(aside)
    older.rename(checkpoint)
    aside.rename(older)


# How the newest one is damaged, which file is named, and the step that a start goes on from: 4 where the one
# of step 6 is damaged with it.
CASES = {
    "a byte less": (cut(lambda size: size - 1), "state.h5", 6),
    "half of it": (cut(lambda size: size // 2), "state.h5", 6),
    "nothing of it": (cut(lambda size: 0), "state.h5", 6),
    "no state": (lambda checkpoint: (checkpoint / "state.h5").unlink(), "state.h5", 6),
    "no manifest": (lambda checkpoint: (checkpoint / "manifest.json").unlink(), "manifest.json", 6),
    "a manifest of nothing": (lambda checkpoint: os.truncate(checkpoint / "manifest.json", 0),
                              "manifest.json", 6),
    "a bit at the front": (flip("state.h5", 0), "state.h5", 6),
    "a bit in the middle": (flip("state.h5", 0.5), "state.h5", 6),
    "a bit at the end": (flip("state.h5", 1), "state.h5", 6),
    "a bit of the manifest": (flip("manifest.json", 0.3), "manifest.json", 6),
    "two files in each other's place": (swap_files, "state.h5", 4),
    "two checkpoints in each other's place": (swap_places, "it stands in another's place", 4),
}


class Damage(Runs):
    def setUp(self):
        super().setUp()
        self.trained("run")
        (self.root / "run/status.json").unlink()  # the run is not taken for finished

    def damaged(self, name, damage):
        shutil.copytree(self.root / "run", self.root / name, symlinks=True)
        newest = self.checkpoint(name, STEPS)
        damage(newest)
        return newest

    def test_the_newest_is_named_and_the_next_older_one_is_taken(self):
        for number, (name, (damage, named, step)) in enumerate(CASES.items()):
            with self.subTest(name):
                run = f"damaged-{number}"
                newest = self.damaged(run, damage)
                if damage is not swap_places:  # as such each of them is whole
                    answer = self.ckpt("verify", newest)
                    self.assertEqual(answer.code, 66 if name == "no manifest" else 80, answer)
                    self.assertIn(str(newest), answer.text)
                    self.assertIn("" if name == "no manifest" else f"{newest}/{named}: ", answer.text)
                again = self.trained(run)
                self.assertRegex(
                    again.text,
                    rf"warning: {newest}[^\n]*{named}[^\n]*"
                    r"(it is passed over|the next older checkpoint is taken)"
                )
                self.assertIn(f"going on from {self.checkpoint(run, step)}, after step {step}", again.text)
                self.assertEqual(self.losses(run), self.losses("run"))
                self.assertEqual(self.sha(run), self.sha("run"))
                self.verified(run)

    def test_where_none_is_whole_a_start_ends_with_80_and_leaves_all_as_it_is(self):
        for number, damage in enumerate((flip("state.h5", 0.4), flip("manifest.json", 0.9))):
            run = f"none-{number}"
            self.damaged(run,
                         lambda checkpoint: [damage(self.checkpoint(run, step)) for step in self.steps(run)])
            before = (self.root / run / "metrics.jsonl").read_bytes()
            text = self.refused(80, run)
            for step in self.steps(run):
                self.assertIn(f"warning: {self.checkpoint(run, step)}", text)
            self.assertIn(f"{self.root / run}/checkpoints: no checkpoint is whole", text)
            self.assertEqual((self.root / run / "metrics.jsonl").read_bytes(), before)
            self.assertEqual(self.steps(run), [2, 4, 6, STEPS])

    def test_ranks_that_share_the_blocks_take_the_same_older_one(self):
        newest = self.damaged("two", flip("state.h5", 0.7))
        again = self.trained("two", "grid.pipeline=2", 2)
        self.assertIn(f"warning: {newest}/state.h5: the bytes from 0 to ", again.text)
        self.assertEqual(self.sha("two"), self.sha("run"))

    def test_damaged_ones_of_later_steps_do_not_count_among_those_that_stay(self):
        self.damaged(
            "kept",
            lambda checkpoint: [flip("state.h5", 0.2)(self.checkpoint("kept", step)) for step in (6, 8)])
        self.trained("kept", "checkpoint.every=0 checkpoint.keep=2 train.steps=5")
        self.assertEqual(self.steps("kept"), [4, 5, 6, 8])
        self.assertEqual(self.ckpt("verify", self.checkpoint("kept", 5)).code, 0)

    def test_a_damaged_one_that_the_run_has_gone_past_takes_no_whole_ones_place(self):
        self.damaged("past", flip("state.h5", 0.5))
        self.trained("past", "checkpoint.every=3 checkpoint.keep=2 train.steps=9")
        self.assertEqual(self.steps("past"), [6, 8, 9])
        for step in (6, 9):
            self.assertEqual(self.ckpt("verify", self.checkpoint("past", step)).code, 0)

    def test_a_finished_run_whose_state_is_gone_is_taken_up_again(self):
        self.trained("finished")
        cut(lambda size: 0)(self.checkpoint("finished", STEPS))
        answer = self.trained("finished")
        self.assertIn(f"going on from {self.checkpoint('finished', 6)}", answer.text)
        self.assertEqual(self.sha("finished"), self.sha("run"))

    def test_the_list_names_what_is_damaged(self):
        newest = self.damaged("list", flip("manifest.json", 0.5))
        answer = self.ckpt("list", self.root / "list")
        self.assertEqual(answer.code, 0, answer)
        self.assertIn(
            f"step-00000008  damaged: {newest}/manifest.json: its bytes are not those that were written",
            answer.text)
        self.assertIn("step-00000006   ", answer.text)


if __name__ == "__main__":
    main()
