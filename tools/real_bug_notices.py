"""Reads what oracles said of planted bugs: which claims noticed one, whether a message names the part where it sits, and a
table of many. tools/real_bugs.py makes the lines.
"""
import collections
import re

BASELINE = "unchanged"  # what the line of the trainer without a bug is called
SUSPECTS = 3  # a part counts as named when one of so many first messages has its word
FIRST_MESSAGES = 10
# Words of a message that name the part of the trainer where a bug sits.
WORDS_OF_PART = {
    "accumulation": "accumulat|micro-batch", "checkpoint": "checkpoint|resum", "clipping": "clip", "data": "data|targets|prompt",
    "evaluation": "evaluat|eval_", "gradients": "gradient", "initialisation": "initial", "loss": "cross.entropy|loss function|weights of",
    "metrics": "metric|reported|tokens", "model": "model|block|attention|recomput", "optimizer": "optimizer|adam|moment|decay",
    "precision": "precision|autocast|bf16|fp16|16 bits|loss scale|scaler", "ranks": "rank|collective|reduc|desync",
    "sampler": "sampl|epoch|shard|shuffl|order", "schedule": "schedule|learning rate|warmup|\\blr\\b",
}


def noticing(verdict):
    return verdict["verdict"] in ("fail", "error")


def notice_of(verdict):
    """By which claims of which arms a verdict noticed."""
    failing = [each for each in verdict["checks"] if each["class"]]
    kinds = {arm["arm"]: arm["kind"] for arm in verdict["arms"]}
    arms = {kinds.get(each["arm"], each["arm"]) for each in failing}
    arms |= {arm["kind"] for arm in verdict["arms"] if arm["status"] != "ok"}
    return {"case": verdict["case"], "verdict": verdict["verdict"], "class": verdict["class"], "arms": sorted(arms),
            "claims": sorted({each["check"] for each in failing})}


def message_of(verdict):
    return f"{verdict['case']}: {verdict['reason']}"


def names_part(part, message, own_words=()):
    """Whether a message has a word of the part. Names that a scenario gave its arms and checks say nothing."""
    for word in sorted(own_words, key=len, reverse=True):
        message = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", " ", message)
    return re.search(WORDS_OF_PART[part], message, re.IGNORECASE) is not None


def read_notices(bug, verdicts, lines):
    """What a bug's line says of these verdicts and of the lines that other oracles printed when they noticed."""
    found = [verdict for verdict in verdicts if noticing(verdict)]
    messages = [(message_of(verdict), [verdict["case"], *(arm["arm"] for arm in verdict["arms"]),
                                       *(each["check"] for each in verdict["checks"])]) for verdict in found]
    messages += [(line, []) for line in lines]
    naming = [i for i, (text, own) in enumerate(messages, 1) if bug["part"] and names_part(bug["part"], text, own)]
    return {"noticed": bool(messages), "cases": len(verdicts), "by": [notice_of(verdict) for verdict in found],
            "classes": dict(collections.Counter(verdict["class"] for verdict in found)),
            "inconclusive": sum(verdict["verdict"] == "inconclusive" for verdict in verdicts),
            "messages": [text for text, _ in messages[:FIRST_MESSAGES]], "named_at": naming[0] if naming else 0}


def summarise(lines):
    """A table by kind; of several lines of a bug the last counts."""
    last = {line["bug"]: line for line in lines if line["bug"] != BASELINE}
    kinds = collections.defaultdict(list)
    for line in last.values():
        kinds[line["kind"]].append(line)
    yield f"{'kind':<16} {'bugs':>5} {'noticed':>8} {'named':>6} {'errors':>7}  classes"
    for kind, some in [*sorted(kinds.items()), ("all", list(last.values()))]:
        noticed = [line for line in some if line["noticed"]]
        named = sum(0 < line["named_at"] <= SUSPECTS for line in noticed)
        classes = sum((collections.Counter(line["classes"]) for line in noticed), collections.Counter())
        words = ", ".join(f"{name} {count}" for name, count in classes.most_common())
        errors = sum(line["noticed"] is None for line in some)
        yield f"{kind:<16} {len(some):>5} {len(noticed):>8} {named:>6} {errors:>7}  {words}".rstrip()
