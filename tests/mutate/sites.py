# SPDX-License-Identifier: MIT
"""Where bugs can be planted in the kernels (see mutate.py), and which operators meet each of them, in
which variants.

An operator meets a site if a kernel that it launches reaches it, through functions and macros, with
the options of that launch. To find out, every site gets a mark of its own in a copy of the kernels,
and the preprocessor shows in which functions the marks come out.
"""
import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from gpu.programs import launches  # noqa: E402

CALL = re.compile(r"\b(ACCV?|STV?|LD[ABPV]?|LDI)\(")
RANGE = re.compile(r"(?<![<>=])(<|>=) ([a-z][\w.]*(?:->\w+)?)(?![\w(\[*])")
CONTROL = re.compile(r"\bnow->(\w+)(\[\w+\])? (\+?=) ([^;]+);")
MARK = re.compile(r"\bQN_SITE_(\d+)_\b")
WORD = re.compile(r"\b[A-Za-z_]\w*")


@dataclasses.dataclass
class Bug:
    path: pathlib.Path
    kind: str
    at: int  # where the mark goes
    line: int
    source: str  # the line without the bug
    mutated: str  # the whole file with it
    variants: dict = dataclasses.field(default_factory=dict)  # {operator: names}, what meets it

    @property
    def ops(self):
        return sorted(self.variants)

    def __str__(self):
        return f"{self.path.name}:{self.line}: {self.kind}"


def code_only(text):
    """The text with comments, directives and the heads of #define blanked, of the same length."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    text = re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.DOTALL)
    text = re.sub(r"(?m)^[ \t]*#[ \t]*define[ \t]+\w+(\([^)]*\))?", blank, text)
    return re.sub(r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text)


def arguments(code, text, start):
    """The arguments in the text of the call whose opening parenthesis ends at `start`, and where
    the call ends."""
    depth, parts, begin = 1, [], start
    for at in range(start, len(code)):
        if code[at] in "([{":
            depth += 1
        elif code[at] in ")]}":
            depth -= 1
            if depth == 0:
                return parts + [text[begin:at]], at + 1
        elif code[at] == "," and depth == 1:
            parts.append(text[begin:at])
            begin = at + 1
    return [], start


def call_bugs(text, code):
    for match in CALL.finditer(code):
        name, (args, end) = match[1], arguments(code, text, match.end())
        at = match.start()

        def changed(name, *args):
            return f"{text[:at]}{name}({','.join(args)}){text[end:]}"
        if name.startswith("ACC") and len(args) == 5:
            yield "beta", at, changed(name.replace("ACC", "ST"), *args[:3], args[4])
        if name.startswith("LD") and len(args) == 3:
            yield "index", at, changed(name, *args[:2], f" ({args[2].strip()}) + 1")
        elif len(args) in (4, 5):
            yield "value", at, changed(name, *args[:-1], f" ({args[-1].strip()}) * 1.01f")


def range_bugs(text, code):
    for match in RANGE.finditer(code):
        line = code[code.rfind("\n", 0, match.start()) + 1:code.find("\n", match.start())]
        if re.search(r"\b(for|if|while)\b|&&|\|\||\?", line):
            new = f"{match[1]} {match[2]} - 1"
            yield "tail", match.start(), text[:match.start()] + new + text[match.end():]


def control_bugs(text, code, integers):
    """Stores into the control block. Integers become 1 larger, as 1 % would be rounded away."""
    for match in CONTROL.finditer(code):
        sign, value = match[3], text[match.start(4):match.end(4)]
        larger = "+ 1" if match[1] in integers else "* 1.01f"

        def changed(new):
            return f"{text[:match.start(3)]}{new}{text[match.end(4):]}"
        yield "value", match.start(), changed(f"{sign} ({value}) {larger}")
        if sign == "+=":
            yield "beta", match.start(), changed(f"= {value}")


def integer_fields(kernels):
    text = (kernels / "lib/control.clh").read_text()
    return {name for names in re.findall(r"^ +uint ([^;]+);", text, re.MULTILINE)
            for name in WORD.findall(names)}


def bugs_of(path, integers):
    text = path.read_text()
    code = code_only(text)
    for kind, at, mutated in [*call_bugs(text, code), *range_bugs(text, code),
                              *control_bugs(text, code, integers)]:
        line = text.count("\n", 0, at) + 1
        yield Bug(path, kind, at, line, text.splitlines()[line - 1].rstrip(" \\").strip(), mutated)


def write_marked(kernels, bugs, folder):
    for path in kernels.rglob("*.cl*"):
        text = path.read_text()
        for number, bug in sorted(enumerate(bugs), key=lambda item: -item[1].at):
            if bug.path == path:
                text = f"{text[:bug.at]} QN_SITE_{number}_ {text[bug.at:]}"
        marked = folder / path.relative_to(kernels)
        marked.parent.mkdir(exist_ok=True)
        marked.write_text(text)


def programs(kernel_programs):
    """[(stem, options, {(operator, variant, kernel)})] of an ordinary GPU and CPU, those that differ in types
    alone once: types never steer the preprocessor."""
    users, whole = {}, {}
    for launch in launches(kernel_programs):
        key = (launch.stem, *(re.sub(r"_TYPE=\w+", "_TYPE", option) for option in launch.options))
        users.setdefault(key, set()).add((launch.operator, launch.variant, launch.kernel))
        whole[key] = launch.options
    return [(key[0], whole[key], users[key]) for key in sorted(users)]


def function_name(head):
    """The name of the function whose text before its brace this is, if it is one."""
    if not head.endswith(")"):
        return None
    depth = 0
    for at in range(len(head) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(head[at], 0)
        if depth == 0:
            names = WORD.findall(head[:at])
            return names[-1] if names else None
    return None


def functions(text):
    """{name: words of the body} of preprocessed text."""
    found, depth, head, name = {}, 0, 0, None
    for match in re.finditer(r"[{};]", text):
        if match[0] == "{":
            if depth == 0:
                name, start = function_name(text[head:match.start()].strip()), match.end()
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == 0 and name:
                found[name] = set(WORD.findall(text[start:match.start()]))
        if depth == 0:
            head = match.end()
    return found


def reached(found, kernel):
    """The numbers of the marks in a kernel and in what it calls."""
    seen, queue, marks = set(), [kernel], set()
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        marks |= {int(mark[1]) for mark in map(MARK.fullmatch, found[name]) if mark}
        queue += found[name] & set(found)
    return marks


def preprocess(folder, stem, options):
    command = ["cc", "-x", "c", "-E", "-P", "-I", folder, *options, folder / f"{stem}.cl"]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def bugs(kernels, kernel_programs, left_out):
    """All bugs but those in the files left out, each with the operators and variants that meet
    it."""
    integers = integer_fields(kernels)
    found = [bug for path in sorted(kernels.rglob("*.cl*")) if path.name not in left_out
             for bug in bugs_of(path, integers)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_marked(kernels, found, folder)
        for stem, options, users in programs(kernel_programs):
            bodies = functions(preprocess(folder, stem, options))
            for op, variant, kernel in users:
                for number in reached(bodies, kernel):
                    found[number].variants.setdefault(op, set()).add(variant)
    return found
