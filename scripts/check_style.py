#!/usr/bin/env python3
"""Rules of the house that a script can count, in src, kernels, tests and scripts.

check_style.py [DIRECTORY]: prints every line that breaks one and exits 1.
  - no comparison with the name of a kind (src/config/kinds.h) outside src/config: compare enums, or ask a
    property
  - no `default:` in a switch over ActionKind or TaskKind: the compiler names each place that a new kind
    forgets
  - no file above 400 lines, no function above 60, unless it is a table: its first line ends in the comment
    `// table`
  - no comma between statements: `a = 1; b = 2;`
  - no class of src whose functions stand in two .cpp files: it is two ideas
  - no class of more than 20 functions with a body, but for those of MANY_FUNCTIONS
  - no type that two headers define under one name: one program has both, and the linker keeps one of two
    functions of a name
  - no line above 110 columns, in Python 140
  - no doc comment (`///` or `///<`) that leans on what stands before it: "of ...", "its ...", "the same ...",
    "as ...", "those ...", "that ...", "and ...", "or ..."
"""
import collections
import pathlib
import re
import sys

MOST_LINES_OF_FILE, MOST_LINES_OF_FUNCTION, MOST_COLUMNS = 400, 60, 110
MOST_FUNCTIONS_OF_CLASS = 20
# Classes that have more, and how many they may have; None: one for each operation.
MANY_FUNCTIONS = {
    "CpuBackend": None, "GpuOperations": None,
    "Communicator": 41, "Model": 29, "Worker": 43,
}
MOST_COLUMNS_OF_PYTHON = 140
FOLDERS = ("src", "kernels", "tests", "scripts")
ENDINGS = (".h", ".cpp", ".cu", ".cuh")
LEANS = re.compile(r'^(?:[^"/]|/(?!//)|"(?:[^"\\]|\\.)*")*///<?\s*'
                   r"(?:[Oo]f|[Ii]ts|[Tt]he same|[Aa]s|[Tt]hose|[Tt]hat|[Aa]nd|[Oo]r)\b")
WORDS_OF_OTHERS = {"auto", "never"}  # what Linux and options of the command line say too

LITERALS = re.compile(
    r'R"\((?:.|\n)*?\)"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'|//[^\n]*|/\*(?:.|\n)*?\*/')
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")
CONTROL = re.compile(
    r"^(?:(?:else\s+)?if(?:\s+constexpr)?|for|while)\s*\(|^(?:else|do|case\b.*?:|default:|\w+:(?!:))\s*")
ASSIGNMENT = re.compile(r"^[\w.:*>\[\]()+-]+ (?:[-+*/%&|^]|<<|>>)?= ")
NAMED_KIND = re.compile(r"case (?:\w+::)*(?:Action|Task)Kind::\w")
NAKED_KIND = re.compile(r"case (?:(?:\w+::)*(?:Action|Task)Kind::)?[a-z]\w*:")
PARTS = re.compile(r"[][(){};:\n]|[^][(){};:\n]+")
CALL = re.compile(r"^(?:\+\+|--)?[\w.:>-]+(?:\[[^]]*\])?(?:\(.*\)|\+\+|--)?$", re.S)


def without_literals(text):
    """The text with comments and what stands in quotes blanked out, lines kept."""
    def blank(found):
        word = found.group()
        if word.startswith("/"):
            return re.sub(r"[^\n]", " ", word)
        return '"' + re.sub(r"[^\n]", "_", word[1:-1]) + '"'
    text = LITERALS.sub(blank, re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "_", text))
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*|^MINDPIPE_\w+\([^\n]*\)$",
                  lambda line: re.sub(r"[^\n]", " ", line.group()), text, flags=re.M)


TEMPLATE_ARGUMENTS = re.compile(r"(?<=\w)<[^<>;{}]*>")


def without_template_arguments(statement):
    while (shorter := TEMPLATE_ARGUMENTS.sub("", statement)) != statement:
        statement = shorter
    return statement


def top_level_parts(statement):
    """What stands between the commas outside of all brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(statement):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(statement[start:at].strip())
            start = at + 1
    return parts + [statement[start:].strip()]


def past_control(statement):
    """The statement behind `if (...)`, `else`, `case x:` and the like."""
    statement = statement.strip()
    while found := CONTROL.match(statement):
        end = found.end()
        if found.group().endswith("("):
            depth = 1
            while end < len(statement) and depth > 0:
                depth += (statement[end] == "(") - (statement[end] == ")")
                end += 1
        statement = statement[end:].strip()
    return statement


def joins_statements(statement):
    parts = top_level_parts(without_template_arguments(past_control(statement)))
    if len(parts) < 2 or re.match(r"(using|template|typedef|friend)\b", parts[0]):
        return False
    if ASSIGNMENT.match(parts[0]):
        return True
    called = CALL.match(parts[0]) and re.search(r"^[+-]|[)+-]$", parts[0]) is not None
    return bool(called) and (ASSIGNMENT.match(parts[1]) or bool(CALL.match(parts[1])))


class Block:
    def __init__(self, head, line, outer, in_brackets):
        self.line = line
        self.is_scope = not in_brackets and (outer is None or outer.is_scope) and \
            ("(" not in head and SCOPE.search(head) is not None or head.startswith('extern "'))
        self.is_function = not in_brackets and not self.is_scope and (outer is None or outer.is_scope) and \
            "(" in head and not re.search(r"=\s*$", head)
        self.is_switch = re.match(r"switch\b", past_control(head)) is not None
        self.kinds = self.default = None


def complaints_of(code, text):
    """(line, sentence) for functions that are too long, joined statements and switches with a default."""
    lines = text.split("\n")
    kind_label = NAKED_KIND if re.search(r"\busing enum (?:\w+::)*(?:Action|Task)Kind\b", code) else NAMED_KIND
    stack, head, head_line, brackets, depths, line = [], "", 1, 0, [], 1
    for part in PARTS.findall(code):
        if part == "\n":
            line += 1
        if not head.strip():
            head_line, head = line, ""
        if part == "{":
            stack.append(
                Block(head.strip(), head_line if head.strip() else line, stack[-1] if stack else None,
                      brackets > 0))
            depths.append((brackets, head, head_line))
            brackets, head = 0, ""
        elif part == "}":
            if not stack:
                return
            block = stack.pop()
            brackets, outer_head, outer_line = depths.pop()
            length = line - block.line + 1
            if block.is_function and length > MOST_LINES_OF_FUNCTION and \
                    not any(lines[at].endswith("// table") for at in range(block.line - 1, block.line + 3)):
                yield block.line, f"a function of {length} lines (at most {MOST_LINES_OF_FUNCTION})"
            if block.is_switch and block.kinds and block.default:
                yield block.default, "default: in a switch over ActionKind or TaskKind (name every kind)"
            is_list = not block.is_function and not block.is_scope and (outer_head.rstrip()[-1:]
                                                                        not in (")", "", "e"))
            in_line = brackets > 0 or is_list
            head, head_line = (outer_head + "{}", outer_line) if in_line else ("", line)
        elif part == ";" and brackets == 0:
            if joins_statements(head):
                yield head_line, "a comma between statements (a = 1; b = 2;)"
            head = ""
        else:
            brackets += (part in "([") - (part in ")]")
            head += part
            if part == ":" and stack and stack[-1].is_switch:
                label = head.strip()
                if label == "default:":
                    stack[-1].default = line
                if kind_label.match(label):
                    stack[-1].kinds = True


def goes_on(line, before):
    """Whether a line's doc comment is the rest of the one above."""
    return line.lstrip().startswith("///") and ("///<" in before if line.lstrip().startswith("///<")
                                                else before.lstrip().startswith("///"))


def complaints_of_lines(lines, is_python):
    for number, line in enumerate(lines, 1):
        most = MOST_COLUMNS_OF_PYTHON if is_python else MOST_COLUMNS
        if len(line) > most:
            yield number, f"a line of {len(line)} columns (at most {most})"
        if not is_python and LEANS.match(line) and not goes_on(line, lines[number - 2] if number > 1 else ""):
            yield number, "a doc comment that does not name its subject"


MEMBER = re.compile(r"^(?:[A-Za-z_][\w:<>,&* ]*?[ &*])?([A-Z]\w*)::(?:[A-Z]\w*::)*~?(?:\w+|operator[^(]*)\([^;{]*\{", re.M)


def classes_of_two_files(root):
    """(path, line, sentence) for each further .cpp that defines functions of a class; one that declares a class of that
    name itself has another in mind."""
    first = {}
    for file in sorted((root / "src").rglob("*.cpp")):
        code = without_literals(file.read_text())
        path = file.relative_to(root).as_posix()
        for found in MEMBER.finditer(code):
            name = found[1]
            if re.search(rf"\b(?:class|struct) {name}\b[^;]*{{", code):
                continue
            if first.setdefault(name, path) != path:
                yield path, code[:found.start()].count("\n") + 1, f"functions of {name}, whose others stand in {first[name]}"
                break


CLASS_HEAD = re.compile(r"^(?:template\b.*>\s*)?(?:class|struct|union)\s+(\w+)(?:\s+final)?(?:\s*:[^:].*)?$", re.S)
OWNER = re.compile(r"(?:^|[\s*&>])([A-Z]\w*)::(?:([A-Z]\w*)::)?~?(?:\w+|operator[^(]*)\s*\(")


def owners_of_bodies(code):
    """The class of each function of a class that has a body."""
    scopes, outer, head, brackets = [], [], "", 0
    for part in PARTS.findall(code):
        if part == "{":
            what = head.strip()
            named, owner = CLASS_HEAD.match(what), OWNER.search(what)
            is_code = brackets > 0 or None in scopes
            is_member = re.search(r"\)\s*:", what) and re.search(r"[:,]\s*\w+$", what)  # a constructor's, in braces
            if not is_code and named:
                scopes.append(named[1])
            elif not is_code and re.match(r"(?:inline\s+)?namespace\b|extern\b", what):
                scopes.append("")
            else:
                if not is_code and not is_member and "(" in what and not re.search(r"=$|^enum\b", what):
                    inner = next((scope for scope in reversed(scopes) if scope), None)
                    if inner or owner:
                        yield inner or owner[2] or owner[1]
                scopes.append(None)
            outer.append((brackets, head))
            brackets, head = 0, ""
        elif part == "}" and scopes:
            scopes.pop()
            brackets, before = outer.pop()
            goes_on = brackets > 0 or before.endswith("=") or "(" in before and re.search(r"[\w,]$", before.rstrip()) and \
                not re.search(r"\b(?:const|override|final|noexcept)$", before.rstrip())
            head = before + "{}" if goes_on else ""
        elif part == ";" and brackets == 0 or head.strip() in ("public:", "private:", "protected:"):
            head = ""
        else:
            brackets += (part in "([") - (part in ")]")
            head += part


def classes_of_many_functions(root):
    """(path, line, sentence) for each class of too many functions."""
    count, place = collections.Counter(), {}
    for folder in ("src", "kernels"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in ENDINGS:
                continue
            code, path = without_literals(file.read_text()), file.relative_to(root).as_posix()
            for owner in owners_of_bodies(code):
                found = re.search(rf"^[ ]*(?:class|struct) {owner}\b[^;]*?{{", code, re.M)
                key = (owner, path if found and file.suffix == ".cpp" else "")
                count[key] += 1
                if found or key not in place:
                    place[key] = path, code[:found.start()].count("\n") + 1 if found else 1
    for key, functions in sorted(count.items()):
        known = MANY_FUNCTIONS.get(key[0], MOST_FUNCTIONS_OF_CLASS)
        if known is not None and functions > known:
            yield *place[key], f"{key[0]} has {functions} functions with a body (at most {known})"


SCOPE_OR_TYPE = re.compile(
    r"^namespace\b(?P<scope>[^;{}]*)\{|^(?:class|struct|enum(?: class)?) (?P<type>\w+)(?: final)?(?:\s*:[^;{}]*)?\s*\{|[{}]", re.M)


def types_of(code):
    """(scope, name, place) for each type that a header defines in namespaces with names."""
    scopes = []
    for found in SCOPE_OR_TYPE.finditer(code):
        if found[0] == "}":
            if scopes:
                scopes.pop()
            continue
        if found["type"] and all(scopes):
            yield "::".join(scopes), found["type"], found.start()
        scopes.append((found["scope"] or "").strip())


def types_of_two_headers(root):
    """(path, line, sentence) for each further header that defines a type of a name."""
    first = {}
    for folder in ("src", "kernels"):
        for file in sorted((root / folder).rglob("*.h")):
            code, path = without_literals(file.read_text()), file.relative_to(root).as_posix()
            for scope, name, place in types_of(code):
                if first.setdefault((scope, name), path) != path:
                    yield path, code[:place].count("\n") + 1, f"another {name} is defined in {first[scope, name]}"


def names_of_kinds(root):
    file = root / "src/config/kinds.h"
    names = re.findall(r'\bkind\(\w+, "([^"]+)"', file.read_text()) if file.exists() else []
    return sorted(set(names) - WORDS_OF_OTHERS)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1])
    names = "|".join(map(re.escape, names_of_kinds(root))) or "(?!)"
    compared = re.compile(
        rf'[=!]=\s*(?:std::string(?:_view)?\(|\w+\()?"(?:{names})"|"(?:{names})"\)?\s*[=!]=')
    bad = False
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in ENDINGS + (".py",):
                continue
            text, path = file.read_text(), file.relative_to(root).as_posix()
            found = list(complaints_of_lines(text.split("\n"), file.suffix == ".py"))
            if file.suffix != ".py":
                found += complaints_of(without_literals(text), text)
            count = text.count("\n")
            if count > MOST_LINES_OF_FILE:
                found.append((count, f"a file of {count} lines (at most {MOST_LINES_OF_FILE})"))
            if file.suffix != ".py" and not path.startswith("src/config/"):
                found += [(number, "compares the name of a kind (compare enums of config/kinds.h)")
                          for number, line in enumerate(text.split("\n"), 1) if compared.search(line)]
            for number, sentence in sorted(found):
                print(f"{path}:{number}: {sentence}")
                bad = True
    for path, line, sentence in (*classes_of_two_files(root), *classes_of_many_functions(root),
                                 *types_of_two_headers(root)):
        print(f"{path}:{line}: {sentence}")
        bad = True
    sys.exit(bad)


if __name__ == "__main__":
    main()
