"""What products_bench says of large products, form by form, and of one row."""
import statistics

FORMS = ("forward", "input", "weight")


def is_large(shape):
    return shape["n"] >= 1024 and shape["k"] * shape["m"] >= 768 * 2304


def by_form(shapes):
    """Of each precision and form the medians over the large shapes: the share of the real peak, and the ratio
    to oneDNN."""
    return {
        precision: {
            form: {
                "of_real_peak": statistics.median(s["ours" + end] / s["real_peak" + end] for s in large),
                "of_raw_peak": statistics.median(s["ours" + end] / s["raw_peak" + end] for s in large),
                "of_onednn": statistics.median(s["ours" + end] / s["onednn" + end] for s in large)
            }
            for form in FORMS
            for large in [[s for s in shapes if s["form"] == form and is_large(s)]]
        }
        for precision, end in (("f32", ""), ("bf16", "_bf16"))
    }


def least(forms, what):
    return min(figures[what] for figures in forms.values())


def one_row(shapes):
    """Of one row by weights from memory: how fast they are read, as a share of a copy's rate. Beside it the share
    of a weight that the last row left in a cache, of which the same copy is no bound."""
    cold = next(shape for shape in shapes if shape["cold"])
    warm = next(shape for shape in shapes if shape["n"] == 1 and not shape["cold"])
    return {
        "f32": cold["weight_gbs"] / cold["copy_gbs"], "bf16": cold["weight_gbs_bf16"] / cold["copy_gbs"],
        "cached_bf16": warm["ours_bf16"] / cold["ours_bf16"] * cold["weight_gbs_bf16"] / cold["copy_gbs"],
        "copy_gbs": cold["copy_gbs"], "read_gbs": cold["read_gbs"]
    }


def report(shapes):
    """Prints what the musts are about, and returns it."""
    large, row = by_form(shapes), one_row(shapes)
    for precision, forms in large.items():
        print("large products, %s: %s of the real peak (%s of the raw one), %s of oneDNN; forward, input, weight" %
              (precision, *(", ".join(text % (factor * forms[form][what]) for form in FORMS)
                            for what, text, factor in (("of_real_peak", "%.0f %%", 100),
                                                       ("of_raw_peak", "%.0f %%", 100),
                                                       ("of_onednn", "%.2f x", 1)))))
    print("one row, weights from memory: f32 %.0f %%, bf16 %.0f %% of a copy's %.1f GB/s (a read has %.1f); "
          "bf16 from a cache %.0f %%" % (100 * row["f32"], 100 * row["bf16"], row["copy_gbs"], row["read_gbs"],
                                         100 * row["cached_bf16"]))
    return {"shapes": shapes, "large": large, "one_row": row}
