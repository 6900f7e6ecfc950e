"""The lies: scenarios and programs that claim what they do not show, each with the answer that it must get.

An answer is a verdict with its class ("error/crash", "pass"), or "refused": then `trainwreck validate` rejects the scenario.
`words` must stand in the reason, in a remark or in the error message. What a program does is said by `lies.script`, see liar.cc.
"""

LIES = []

BASE = {
    "apiVersion": "trainwreck/v1",
    "kind": "Scenario",
    "recipe": {"steps": 30},
    "seeds": 3,
    "budget": {"seconds": 20, "stall_seconds": 0.5},
    "inject": {"hot": {"fault": "recipe.high_lr"}},
    "healthy": {"learns": "mean(loss[-5:]) < 0.5 * mean(loss[:3])"},
    "symptoms": {"blows_up": {"assert": "eventually[:10] nonfinite(loss)", "min_margin": "2 steps"}},
    "remedies": {"lower_lr": {"scale": {"optimizer.lr": 0.1}},
                 "clip": {"set": {"optimizer.clip_norm": 1.0}}},
    "decoys": {"decay": {"set": {"optimizer.weight_decay": 0.01}}},
    "quality": "mean(loss[-5:]) <= 1.5 * control.mean(loss[-5:])",
}
BAD_BATCH = {
    "inject": {"bad": {"fault": "data.bad_batch", "at": 5}},
    "remedies": {"guard": {"set": {"loader.guard": True}}},
}
SPOILED_ARMS = ("control", "fault", "lower_lr", "decay")


def lie(name, answer, words="", script="", **parts):
    scenario = dict(BASE, name=name, title=f"A lie: {name}", **parts)
    scenario["recipe"] = dict(BASE["recipe"], **parts.get("recipe", {}))
    if script:
        scenario["recipe"]["lies"] = {"script": script}
    scenario = {key: value for key, value in scenario.items() if value is not None}
    LIES.append({"name": name, "answer": answer, "words": words, "scenario": scenario})


# The truth, so that the other answers are not the base's.
lie("the-truth", "pass")
lie("the-truth-of-a-bad-batch", "pass", **BAD_BATCH)
lie("the-truth-at-the-last-step", "pass", script="control:exit0@30")

# A claim that holds because an event is absent is about no end.
ABSENT = {
    "not-killed": "not exited(signal=9)",
    "never-killed": "never exited(signal=9)",
    "no-code-3": "not exited(code=3)",
    "not-stalled": "not stalled(waiting_rank=7)",
    "never-restarted": "never restarted(attempt=1)",
    "no-mismatch": "not collective_mismatch()",
    "no-timeout": "not timeout(seconds=1)",
}
ENDS = {"exit1": "error/crash", "abort": "error/crash", "silent": "error/crash", "exit0": "error/incomplete"}
for absent, formula in ABSENT.items():
    for end, answer in ENDS.items():
        for arm in SPOILED_ARMS:
            claims = {"healthy": dict(BASE["healthy"], calm=formula)}
            if arm in ("fault", "decay"):
                claims = {"symptoms": {"blows_up": f"eventually[:10] nonfinite(loss) and {formula}"}}
            if arm == "decay" and end in ("abort", "silent"):
                continue  # as in the fault arm
            lie(f"{arm.replace('_', '-')}-{end}-{absent}", answer, script=f"{arm}:{end}@15", **claims)
for absent in ("not-killed", "never-restarted"):
    for arm in ("control", "lower_lr", "fault"):
        claims = {"healthy": dict(BASE["healthy"], calm=ABSENT[absent])}
        if arm == "fault":
            claims = {"symptoms": {"blows_up": f"eventually[:10] nonfinite(loss) and {ABSENT[absent]}"}}
        lie(f"{arm.replace('_', '-')}-hang-{absent}", "error/timeout", script=f"{arm}:hang@15", **claims)

# A claim about another end than this one.
lie("killed-by-us", "error/timeout", "stalled", script="fault:hang@8 decay:hang@8",
    symptoms={"dies": "exited(signal=9)"})
lie("killed-by-us-when-stopped", "error/timeout", script="fault:stop@8 decay:stop@8",
    symptoms={"dies": "eventually exited(rank=0, signal=9)"})
lie("another-code", "error/crash", script="fault:exit1@8 decay:exit3@8", symptoms={"dies": "exited(code=3)"})
lie("a-signal-for-a-code", "error/crash", script="fault:abort@8 decay:exit1@8", symptoms={"dies": "exited(code=1)"})
lie("another-death-or-anything", "error/crash", script="fault:exit1@8 decay:exit1@8",
    symptoms={"dies": "exited(code=3) or eventually[:10] nonfinite(loss)"})
# Of a program that ends itself because its loss is NaN.
lie("a-death-or-its-cause-claimed-and-shown", "pass", script="fault:exit1@8 decay:exit1@8",
    symptoms={"dies": "exited(code=1) or eventually[:10] nonfinite(loss)"})
lie("a-death-claimed-and-shown", "pass", script="fault:exit1@8 decay:exit1@8", symptoms={"dies": "exited(code=1)"})
lie("a-hang-claimed-and-shown", "pass", script="fault:hang@8 decay:hang@8",
    symptoms={"hangs": "stalled(lagging_rank=0)"})
lie("an-early-end-claimed-and-shown", "pass", script="fault:exit0@8 decay:exit0@8",
    symptoms={"gives_up": "ended_early(steps_done=8)"})
lie("an-early-end-claimed-elsewhere", "error/incomplete", script="fault:exit0@8 decay:exit0@9",
    symptoms={"gives_up": "ended_early(steps_done=8)"})
lie("a-death-in-a-remedy-too", "fail/remedy_ineffective",
    script="fault:exit1@8 decay:exit1@8 lower_lr:exit1@8", symptoms={"dies": "exited(code=1)"})
lie("a-death-in-control-too", "error/crash", "exited with code 1 after step 7",
    script="fault:exit1@8 decay:exit1@8 control:exit1@8", symptoms={"dies": "exited(code=1)"})
lie("a-remedy-that-dies-otherwise", "error/crash",
    script="fault:exit1@8 decay:exit1@8 lower_lr:exit3@8", symptoms={"dies": "exited(code=1)"})
lie("dead-after-the-last-step", "error/crash", script="control:late1")
lie("a-claimed-crash-without-its-code", "error/crash", script="control:exit1@20",
    healthy=dict(BASE["healthy"], says_so="exited(code=1) or count(loss[:]) > 3"))

# Half a run.
for arm in ("control", "fault", "lower_lr", "clip", "decay"):
    for step in (1, 6, 15, 29):
        lie(f"{arm.replace('_', '-')}-of-{step}-steps", "error/incomplete", f"completed after {step} of 30 steps",
            script=f"{arm}:exit0@{step}",
            healthy={"begins": "loss[0] > 1"}, quality=None)
lie("a-control-without-steps", "error/incomplete", "0 of 30", script="control:nostep",
    healthy={"ends": "ended(rank=0, why=completed)"}, quality=None)
lie("a-remedy-without-steps", "error/incomplete", "0 of 30", script="lower_lr:nostep",
    healthy={"ends": "ended(rank=0, why=completed)"}, quality=None)
lie("a-step-beyond-the-end", "error/crash", "beyond the planned", script="control:beyond@10")
lie("half-of-a-line", "error/crash", "not a JSON object", script="control:garbage@10")
lie("a-loss-in-words", "error/crash", "no number", script="control:text@10")
lie("a-missing-loss", "inconclusive/undecided", script="control:noloss@28")
lie("no-end-record", "error/crash", script="control:noend")

# Seeds that may be lost.
TEN = {"count": 10, "require": 6}


def seeds(arm, action, numbers):
    return " ".join(f"{arm}/{number}:{action}" for number in numbers)


lie("four-of-ten-without-symptom", "pass", "seeds 0 1 2 3", seeds=TEN, script=seeds("fault", "healthy", range(4)))
lie("five-of-ten-without-symptom", "fail/symptom_absent", seeds=TEN, script=seeds("fault", "healthy", range(5)))
lie("a-remedy-for-the-rest", "fail/symptom_absent", "lets 4 go", seeds=TEN,
    script=seeds("fault", "healthy", range(4)) + " " + seeds("lower_lr", "nan@6", range(4, 8)))
lie("a-remedy-that-fails-where-it-counts", "fail/symptom_absent", seeds=TEN,
    script=seeds("fault", "healthy", range(4)) + " " + seeds("lower_lr", "nan@6", range(4, 10)))
lie("two-remedies-that-share-the-work", "fail/remedy_ineffective", seeds=TEN,
    script=seeds("lower_lr", "nan@6", range(4)) + " " + seeds("clip", "nan@6", range(4, 8)))
lie("a-decoy-that-helps-elsewhere", "fail/remedy_ineffective", seeds=TEN,
    script=seeds("lower_lr", "nan@6", range(4)) + " " + seeds("decay", "healthy", range(4, 8)))
lie("an-unhealthy-control-elsewhere", "fail/control_unhealthy", seeds=TEN,
    script=seeds("control", "high@0", range(4)) + " " + seeds("fault", "healthy", range(4, 8)))
lie("all-that-is-lost-in-the-same-seeds", "pass", "seeds 0 1 2 3", seeds=TEN,
    script=" ".join([seeds("fault", "healthy", range(4)), seeds("lower_lr", "nan@6", range(4)),
                     seeds("control", "high@0", range(4)), seeds("decay", "healthy", range(4))]))
lie("a-crash-in-a-lost-seed", "error/crash", seeds=TEN, script=seeds("fault", "healthy", [0]) + " control/0:exit1@5")
lie("half-a-run-in-a-lost-seed", "error/incomplete", seeds=TEN, script="control/0:exit0@15")
lie("unknown-beside-broken", "inconclusive/undecided", seeds=TEN,
    script=seeds("fault", "healthy", range(4)) + " control/9:noloss@28")
lie("unknown-in-five", "inconclusive/undecided", seeds=TEN, script=seeds("control", "noloss@28", range(5)))
lie("costly-beside-broken", "fail/symptom_absent", seeds=TEN,
    script=seeds("fault", "healthy", range(3)) + " " + seeds("lower_lr", "worse", range(3, 6)))
lie("silent-faults-beside-broken", "fail/fault_not_fired", seeds=TEN, **BAD_BATCH,
    script=seeds("fault", "nofire", range(3)) + " " + seeds("guard", "nan@6", range(3, 6)))
lie("half-of-the-seeds", "refused", "more than half", seeds={"count": 10, "require": 5})
lie("one-of-ten-seeds", "refused", "more than half", seeds={"count": 10, "require": 1})
lie("one-of-two-seeds", "refused", "more than half", seeds={"count": 2, "require": 1})
lie("seeds-that-nobody-uses", "pass", "does not use its seed", script="*:same")

# Remedies that take the fault out, whatever they do beside it.
DETOURS = {
    "plain": {"set": {"optimizer.lr": 0.1}},
    "and-an-unread-key": {"set": {"optimizer.lr": 0.1, "unread": 1}},
    "and-a-clip-that-never-acts": {"set": {"optimizer.lr": 0.1, "optimizer.clip_norm": 1.0e9}},
    "and-a-hair-of-decay": {"set": {"optimizer.lr": 0.1, "optimizer.weight_decay": 1.0e-12}},
    "by-a-factor": {"scale": {"optimizer.lr": 0.066666667}},
    "by-a-rounded-factor": {"scale": {"optimizer.lr": 0.067}},
    "by-a-factor-and-an-unread-key": {"scale": {"optimizer.lr": 0.0666667}, "set": {"unread": 2}},
    "by-a-hair-beside-it": {"set": {"optimizer.lr": 0.1001}},
    "by-a-hair-below-it": {"set": {"optimizer.lr": 0.0995}},
    "and-a-real-change": {"set": {"optimizer.lr": 0.1, "optimizer.clip_norm": 1.0}},
    "and-a-longer-run": {"set": {"optimizer.lr": 0.1, "steps": 40}},
}
for name, change in DETOURS.items():
    lie(f"undo-{name}", "fail/remedy_ineffective", "only undoes", remedies={"better": change})
    lie(f"undo-{name}-beside-a-remedy", "pass", "'better' only undoes",
        remedies={"better": change, "clip": {"set": {"optimizer.clip_norm": 1.0}}})
lie("a-remedy-equal-to-control", "pass", "'guard' equals control bit for bit", **BAD_BATCH)
lie("a-decoy-that-does-nothing", "pass", "'idle' equals the fault arm bit for bit",
    decoys={"idle": {"set": {"unread": 1}}})
lie("a-decoy-that-clips-at-nothing", "fail/decoy_effective", decoys={"idle": {"set": {"optimizer.clip_norm": 1.0e9}}})
lie("a-remedy-that-changes-nothing", "refused", "changes nothing", remedies={"idle": {"set": {"unread": 0}}})
lie("a-remedy-that-waives-all", "pass", "waives all that is healthy",
    remedies={"lower_lr": {"scale": {"optimizer.lr": 0.1}, "waives": ["learns", "quality"]}})

# Remedies that only shorten the run.
for name, change in {"by-half": {"scale": {"steps": 0.5}}, "to-five": {"set": {"steps": 5}},
                     "to-four": {"set": {"steps": 4}}, "to-more": {"set": {"steps": 60}}}.items():
    lie(f"a-run-shortened-{name}", "refused", "only changes how long the run is", remedies={"shorter": change})

# Symptoms that say no more than that the fault fired.
for name, formula in {
        "plain": "fired(hot)", "eventually": "eventually fired(hot)", "in-a-window": "eventually[:9] fired(hot)",
        "twice": "fired(hot) and fired(hot)", "or-more": "fired(hot) or eventually nonfinite(loss)",
        "or-anything": "fired(hot) or mean(loss[-5:]) > 100", "at-the-end": "eventually[0:29] fired(hot)",
        "not-not": "not not fired(hot)", "implied": "(not fired(hot)) implies mean(loss[-5:]) > 100",
        "any-rank": "any_rank(fired(hot))"}.items():
    lie(f"only-fired-{name}", "refused", "holds as soon as the fault fires", symptoms={"acts": formula},
        remedies=None, no_remedy="nothing helps")

# Evidence.
for arm in ("fault", "guard", "decay"):
    for action in ("nofire", "firesame", "fireempty"):
        lie(f"{arm}-{action}", "fail/fault_not_fired", script=f"{arm}:{action}", **BAD_BATCH)
lie("a-fault-without-harm", "fail/symptom_absent", script="fault:harmless", **BAD_BATCH)
lie("a-fault-in-control", "fail/control_unhealthy", "must not act here", script="control:fires@3")
lie("a-fault-of-one", "fail/fault_not_fired", inject={"hot": {"fault": "recipe.high_lr", "with": {"factor": 1}}})

# Control.
for name, (action, answer) in {
        "never-learns": ("high@0", "fail/control_unhealthy"), "is-flat": ("flat", "fail/control_unhealthy"),
        "shows-the-symptom": ("nan@8", "fail/symptom_in_control"),
        "shows-it-for-a-step": ("nan1@8", "fail/symptom_in_control"),
        "turns-nan-late": ("nan@20", "inconclusive/undecided")}.items():
    lie(f"a-control-that-{name}", answer, script=f"control:{action}")
for action in ("exit1", "abort", "kill"):
    lie(f"a-control-restarted-after-{action}", "fail/control_unhealthy", "needs no restart",
        script=f"control:{action}@10 control:once", recipe={"supervisor": {"max_restarts": 1}})
lie("a-remedy-restarted", "pass", script="lower_lr:exit1@10 lower_lr:once",
    remedies={"lower_lr": {"scale": {"optimizer.lr": 0.1}, "set": {"supervisor.max_restarts": 1}}})
lie("a-reference-restarted", "fail/control_unhealthy", "needs no restart", reference=True,
    script="reference:exit1@10 reference:once", recipe={"supervisor": {"max_restarts": 1}})
lie("a-reference-of-half-a-run", "error/incomplete", reference=True, script="reference:exit0@15")
lie("no-healthy-check", "pass", "no `healthy` check", healthy=None)
for action in ("nan@20", "nan1@25", "zero"):
    lie(f"no-healthy-check-and-{action.replace('@', '-')}", "fail/control_unhealthy", healthy=None,
        script=f"control:{action}", quality=None)

lie("a-healthy-check-against-itself", "pass", "says anything of control",
    healthy={"as_good": "mean(loss[-5:]) <= 1.5 * control.mean(loss[-5:])"})
lie("a-healthy-check-against-itself-and-nan", "fail/control_unhealthy", script="control:nan1@20",
    healthy={"as_good": "mean(loss[-5:]) <= 1.5 * control.mean(loss[-5:])"})

# Remedies and decoys.
for name, (action, answer) in {
        "nan-again": ("nan@6", "fail/remedy_ineffective"), "nan-for-a-step": ("nan1@9", "fail/remedy_ineffective"),
        "no-learning": ("high@0", "fail/remedy_ineffective"), "much-worse": ("worse", "fail/remedy_costly"),
        "nan-at-the-end": ("nan@28", "inconclusive/undecided")}.items():
    lie(f"a-remedy-with-{name}", answer, script=f"lower_lr:{action}")
    lie(f"a-remedy-with-{name}-in-one-seed", answer, script=f"lower_lr/2:{action}")
lie("a-decoy-that-helps", "fail/decoy_effective", script="decay:healthy")
lie("a-decoy-that-helps-in-one-seed", "fail/decoy_effective", script="decay/1:healthy")
lie("a-symptom-just-in-time", "fail/symptom_weak",
    symptoms={"blows_up": {"assert": "eventually[:6] nonfinite(loss)", "min_margin": "2 steps"}})
lie("no-remedy-at-all", "refused", "no remedies", remedies=None)

# Expectations that would call anything a success.
lie("expects-any-error", "refused", "needs a class", expect={"verdict": "error", "reason": "flaky"},
    script="control:exit1@5")
lie("expects-any-doubt", "refused", "needs a class", expect={"verdict": "inconclusive", "reason": "hard"})
lie("expects-an-error-in-a-word", "refused", "needs a class", expect="error", reason="flaky")
lie("expects-nothing-to-start", "refused", "cannot be expected",
    expect={"verdict": "error", "class": "infrastructure", "reason": "flaky"})
lie("expects-another-error", "error/crash", script="control:exit1@5",
    expect={"verdict": "error", "class": "timeout", "reason": "slow"})
lie("expects-another-failure", "fail/remedy_costly", script="lower_lr:worse",
    expect={"verdict": "fail", "class": "symptom_absent", "reason": "hard"})
lie("expects-a-limit-that-is-gone", "fail/unexpected_pass",
    expect={"verdict": "fail", "class": "symptom_absent", "reason": "hard"})
lie("expects-a-crash-and-hangs", "error/timeout", script="control:hang@5",
    expect={"verdict": "error", "class": "crash", "reason": "flaky"})

# Claims that are true by construction.
for name, formula in {
        "itself": "loss[5] <= loss[5]", "itself-at-all-steps": "always (loss <= loss)",
        "its-mean": "mean(loss[-5:]) <= mean(loss[-5:])", "itself-and-more": "mean(loss[-5:]) < mean(loss[-5:]) + 1",
        "nothing": "loss[3] - loss[3] == 0", "two-numbers": "1 < 2", "two-sums": "2 + 2 == 4",
        "a-number-and-never": "never (3 < 2)", "either-way": "loss[9] < 1 or not loss[9] < 1",
        "implied-by-itself": "loss[9] < 1 implies loss[9] < 1",
        "control-and-itself": "control.mean(loss[-5:]) <= control.mean(loss[-5:])",
        "a-count": "count(loss[:]) >= 0"}.items():
    lie(f"healthy-by-{name}", "refused", "", healthy={"fine": formula})
    lie(f"quality-by-{name}", "refused", "", quality=formula)
