#!/usr/bin/env python3
"""Checks the guides' rule over stored runs: a spike of grad_norm before NaN means optimisation, a flat one data or numerics.

  trainwreck matrix 'nan/*' --seeds 20 --keep --output DIR
  tools/spike_rule.py DIR

Prints a line per case of the family nan, from its fault arms that reach a loss that is not finite: in how many runs
grad_norm spikes within the 20 steps before (spike(grad_norm, ratio=4, window=8) of docs/reference/formulas.md), how many steps the
first such spike is ahead, and in how many runs the rule names the cause that the scenario injects. Then: how many of the
runs that stay finite have such a spike all the same, in all families of DIR.
"""
import json
import math
import pathlib
import statistics
import sys

# What the scenario breaks; everything else in the family is data or numerics.
OPTIMISATION = {"lr-too-high", "no-warmup", "no-clipping", "late-divergence"}
RATIO, WINDOW, HORIZON = 4, 8, 20


def read(path):
    losses, norms = [], []
    with open(path, encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            if record.get("t") == "step":
                losses.append(float(record["loss"]))
                norms.append(float(record["grad_norm"]))
    return losses, norms


def is_spike(values, step):
    before = values[max(0, step - WINDOW):step]
    if not before or not values[step] > 0 or any(math.isnan(value) for value in before):
        return False
    return values[step] >= RATIO * statistics.median(before)


def lead_of(losses, norms):
    """Step of the first loss that is not finite, and how far ahead the first spike is; either may be None."""
    end = next((step for step, loss in enumerate(losses) if not math.isfinite(loss)), None)
    if end is None:
        return None, None
    spikes = [step for step in range(max(1, end - HORIZON), end) if is_spike(norms, step)]
    return end, end - spikes[0] if spikes else None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]) / "nan"
    cases = {}
    for path in sorted(root.glob("**/fault/*/rank0.jsonl")):
        cases.setdefault(str(path.parent.parent.parent.relative_to(root)), []).append(lead_of(*read(path)))
    total = {True: [0, 0], False: [0, 0]}
    print("| case | runs | not finite | spike ahead | steps ahead | the rule is right |")
    print("|---|---|---|---|---|---|")
    for case, ends in cases.items():
        is_optimisation = case.split("/")[0] in OPTIMISATION
        failed = [lead for end, lead in ends if end is not None]
        leads = sorted(lead for lead in failed if lead is not None)
        right = len(leads) if is_optimisation else len(failed) - len(leads)
        total[is_optimisation][0] += right
        total[is_optimisation][1] += len(failed)
        ahead = f"{leads[0]} / {statistics.median(leads):g} / {leads[-1]}" if leads else "-"
        print(f"| nan/{case} | {len(ends)} | {len(failed)} | {len(leads)} | {ahead} | "
              f"{f'{right} of {len(failed)}' if failed else '-'} |")
    for is_optimisation, name in ((True, "optimisation"), (False, "data or numerics")):
        print(f"{name}: {total[is_optimisation][0]} of {total[is_optimisation][1]}")
    for arm in ("control", "fault"):
        spiked = finite = 0
        for path in root.parent.glob(f"**/{arm}/*/rank0.jsonl"):
            losses, norms = read(path)
            if losses and all(map(math.isfinite, losses)):
                finite += 1
                spiked += any(is_spike(norms, step) for step in range(1, len(norms)))
        print(f"finite runs of {arm} with a spike: {spiked} of {finite}")


if __name__ == "__main__":
    main()
