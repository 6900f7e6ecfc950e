"""Finds what a machine can change in C++ that clang-format wrote, and writes all of it into one text, each edit behind a switch
of tools/mutants.h. Edits only insert, and never a line, so a compiler's line is the line of the source.
"""
import bisect
import dataclasses
import re

SWAPS = {"+": "-", "-": "+", "*": "/", "/": "*", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
OPERATOR = re.compile(r"(?<=[\w)\]}\"'] )(?:" + "|".join(map(re.escape, sorted(SWAPS, key=len, reverse=True))) + r")(?=[ \n])")
# Numbers in hexadecimal are the constants of generators, of which another is as good.
NUMBER = re.compile(r"(?<![\w.'])(?<!p-)\d[\d']*(\.\d*)?(e[+-]?\d+)?[uUlLfF]*(?![\w.'])")
TRUTH = re.compile(r"\b(true|false)\b")
# Where nothing can be switched at run time: the compiler needs these, or they are names.
UNCHANGED = re.compile(r"(?m)^ *(#|static_assert|enum|template|using|namespace|friend|case ).*$")
THROWN = re.compile(r"\b(?:throw|TORCH_CHECK)\b[^;]*;")  # what an error says
CONSTANT = re.compile(r"(?m)^ *(static |inline )*constexpr .*$")
CONSTANT_NUMBER = re.compile(r"(?m)^(constexpr)(?= double \w+ = )")  # `const` does as well
QUOTED = re.compile(r"//[^\n]*|/\*.*?\*/|R\"(\w*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])+'", re.DOTALL)
TYPE_ARGUMENTS = re.compile(r"(?<=\w)<[^<>;(){}\n]*>|(?<=\w)<[^<>;{}\n]*\(\)>")
# A call, or a change of what is there already; without what is in brackets.
NAMED = r"[A-Za-z_]\w*(?:::\w+)*(?:(?:\.|->)\w+|\[\]|\(\))*"
STATEMENT = re.compile(rf"(?:{NAMED}\(\)|(?:\+\+|--){NAMED}|{NAMED}(?:\+\+|--)|\*?{NAMED} [-+*/%|&]?=(?: |\n).*);", re.DOTALL)
NO_STATEMENT = re.compile(r"(return|throw|break|continue|goto|delete|default|else|do|case|public|private|protected)\b|[A-Z_]+\(")
MOST_LINES = 4  # of a statement that may be left out


@dataclasses.dataclass
class Edit:
    path: str
    line: int
    column: int
    kind: str
    what: str
    begin: int  # offsets in the text
    end: int
    number: int = 0

    def insertions(self):
        """(offset, order among those of one offset, text)."""
        number = self.number
        if self.kind == "operator":
            return [(self.end, (0, 0), f" mutant::Operator<{number}>() {self.what.split()[0]}")]
        if self.kind == "deletion":
            return [(self.begin, (1, 0), f"{{ if (!mutant::On<{number}>()) "), (self.end, (0, 9), " }")]
        name = {"condition": "Condition", "number": "Number", "truth": "Truth"}[self.kind]
        inner = self.kind != "condition"
        # What opens first closes last.
        return [(self.begin, (1, 1 + inner), f"mutant::{name}<{number}>("), (self.end, (0, 1 - inner), ")")]


def masked(text):
    """The same text with `_` or blanks for what is no code, and for types' arguments; every offset stays."""
    def blank(found):
        word = found[0]
        if word.startswith("/"):
            return re.sub(r"[^\n]", " ", word)
        return word[0] + re.sub(r"[^\n]", "_", word[1:-1]) + word[-1]

    text = QUOTED.sub(blank, text)
    before = None
    while before != text:
        before = text
        text = TYPE_ARGUMENTS.sub(lambda found: "_" * len(found[0]), text)
    for part in (UNCHANGED, THROWN):
        text = part.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    return text


def closing(text, opening):
    """The offset of the bracket that closes the one at `opening`, or None."""
    depth = 0
    for i in range(opening, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0:
            return i
    return None


def without_brackets(text):
    """What is in brackets left out, the outermost brackets kept."""
    kept, depth = [], 0
    for letter in text:
        depth -= letter in ")]}"
        if depth == 0:
            kept.append(letter)
        depth += letter in "([{"
    return "".join(kept)


def condition_in(code, opening):
    """Begin and end of what an `if (` at `opening` asks, without what it declares; None where the declared is asked."""
    end = closing(code, opening)
    if end is None:
        return None
    begin, depth = opening + 1, 0
    for i in range(begin, end):
        depth += (code[i] in "([{") - (code[i] in ")]}")
        if code[i] == ";" and depth == 0:
            begin = i + 2
    asked = without_brackets(code[begin:end])
    return None if re.search(r"(?<![<>=!]) = ", asked) else (begin, end)


def statement_at(code, begin):
    """The end of a statement that may be left out, or None."""
    if NO_STATEMENT.match(code, begin):
        return None
    depth = 0
    for i in range(begin, len(code)):
        depth += (code[i] in "([{") - (code[i] in ")]}")
        if depth < 0:
            return None
        if code[i] == ";" and depth == 0:
            whole = code[begin:i + 1]
            short = whole.count("\n") < MOST_LINES and "{\n" not in whole
            return i + 1 if short and STATEMENT.fullmatch(without_brackets(whole)) else None
    return None


def statement_starts(code):
    """Where a statement may begin: after `;` or a brace, and behind `if (...)`, `for (...)` and `else`."""
    for found in re.finditer(r"(?<=[;{}])\s+(?=[\w*+-])", code):
        yield found.end()
    for found in re.finditer(r"\b(if|for|while) (?=\()", code):
        end = closing(code, found.end())
        behind = end and re.compile(r"\)\s+(?=[\w*+-])").match(code, end)
        if behind:
            yield behind.end()
    for found in re.finditer(r"\belse (?=[\w*+-])", code):
        yield found.end()


def find_edits(path, text):
    code = masked(text)
    variable = CONSTANT.sub(lambda found: found[0] if CONSTANT_NUMBER.match(found[0]) else " " * len(found[0]), code)
    lines = [0, *(found.end() for found in re.finditer("\n", text))]
    edits = []

    def add(kind, begin, end, what):
        line = bisect.bisect_right(lines, begin)
        edits.append(Edit(path, line, begin - lines[line - 1] + 1, kind, what, begin, end))

    for found in OPERATOR.finditer(variable):
        add("operator", found.start(), found.end(), f"{found[0]} becomes {SWAPS[found[0]]}")
    for found in NUMBER.finditer(variable):
        decimal = found[1] or found[2]
        plus_one = "1.0" if decimal and float(found[0].rstrip("fF")) == 0 else f"2 * {found[0]}"
        add("number", found.start(), found.end(), f"{found[0]} becomes {plus_one if decimal else found[0] + ' + 1'}")
    for found in TRUTH.finditer(variable):
        add("truth", found.start(), found.end(), f"{found[0]} becomes {'false' if found[0] == 'true' else 'true'}")
    for found in re.finditer(r"\bif (?=\()", code):
        place = condition_in(code, found.end())
        if place:
            add("condition", *place, f"not ({text[place[0]:place[1]]})")
    for begin in sorted(set(statement_starts(code))):
        end = statement_at(code, begin)
        if end:
            add("deletion", begin, end, f"without {text[begin:end]}")
    for edit in edits:
        edit.what = " ".join(edit.what.split())
    return sorted(edits, key=lambda edit: (edit.begin, edit.kind))


def write_edits(text, edits):
    """The text with these edits, and where each insertion begins in it: sorted [(offset, number)]."""
    text = CONSTANT_NUMBER.sub("const    ", text)
    pieces, places, at, length = [], [], 0, 0
    insertions = sorted((offset, order, inserted, edit.number) for edit in edits for offset, order, inserted in edit.insertions())
    for offset, _, inserted, number in insertions:
        pieces += [text[at:offset], inserted]
        length += offset - at
        places.append((length, number))
        length += len(inserted)
        at = offset
    return "".join([*pieces, text[at:]]), places
