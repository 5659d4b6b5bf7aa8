"""Functions with a quick text for usual arguments and another one for all: one test for a vector, not for each number.

A loop with a branch does not become vector instructions. So the choice between the two is a function of its own,
@NAME_chosen, with variants for vectors (LLVM's "vector-function-abi-variant"): the vectoriser calls one for as many
numbers as it takes at once. That branches on whether the test is true for all, and if it is not, it computes the other
text for the whole vector. What a number gives does not depend on its neighbours: it takes what its own test says.
"""

from __future__ import annotations

from edbatch.kernels.language.code import Value
from edbatch.kernels.language.llvm_code import LLVM, pointer

_LANES = {"float": (4, 8, 16), "double": (2, 4, 8)}
_PURE = "nounwind willreturn"


def chosen(number: str, name: str, arguments: tuple[str, ...]) -> str:
    """The definition of @NAME_chosen(arguments, quick, i1 usual), given @NAME_anywhere(arguments).

    Args:
        number: the type of them, "float" or "double".
    """
    given = ", ".join(f"{number} %{argument}" for argument in arguments)
    lanes, kinds = _LANES[number], "v" * (len(arguments) + 2)
    variants = ",".join(f"_ZGV_LLVM_N{n}{kinds}_{name}_chosen({name}_chosen{n})" for n in lanes)
    alone = f"""\
define internal {number} @{name}_chosen({given}, {number} %quick, i1 %usual)
  noinline {_PURE} "vector-function-abi-variant"="{variants}" {{
entry:
  br i1 %usual, label %end, label %other
other:
  %slow = call {number} @{name}_anywhere({given})
  br label %end
end:
  %value = phi {number} [ %quick, %entry ], [ %slow, %other ]
  ret {number} %value
}}"""
    many = [_variant(number, name, arguments, n) for n in lanes]
    return "\n".join([alone, _of_array(number, name, arguments), *many])


def _of_array(number: str, name: str, arguments: tuple[str, ...]) -> str:
    """@NAME_array: the text for all, of the numbers in arrays, which is vectorised like a kernel."""
    code, floats = LLVM(number), pointer(number)
    with code.loop(Value("i64", "%n")) as at:
        read = [code.load(number, code.entry(number, Value(floats, f"%{name}"), at)) for name in arguments]
        value = code.call(number, f"{name}_anywhere", ", ".join(f"{number} {x.name}" for x in read))
        code.store(value, code.entry(number, Value(floats, "%out"), at))
    given = "".join(f"{floats} noalias %{argument}, " for argument in arguments)
    head = f"define internal void @{name}_array({given}{floats} noalias %out, i64 %n) noinline cold {_PURE} {_WIDE} {{"
    return "\n".join([head, "entry:", *code.lines, "  ret void", "}"])


_WIDE = '"prefer-vector-width"="512" "min-legal-vector-width"="512"'


def _variant(number: str, name: str, arguments: tuple[str, ...], lanes: int) -> str:
    """@NAME_chosenLANES, of vectors."""
    vector, truths, bits = f"<{lanes} x {number}>", f"<{lanes} x i1>", f"i{lanes}"
    code = LLVM(number)
    places = [code.local(vector) for _ in (*arguments, "out")]
    first = [
        place
        if pointer(number) == "ptr"
        else code.emit(pointer(number), f"bitcast {vector}* {place.name} to {pointer(number)}")
        for place in places
    ]
    addresses, begun = code.lines, code.begin
    code.lines = []
    for argument, place in zip(arguments, places, strict=False):
        code.store(Value(vector, f"%{argument}"), place)
    given = "".join(f"{place.type} {place.name}, " for place in first)
    code.lines.append(f"  call void @{name}_array({given}i64 {lanes})")
    slow = code.load(vector, places[-1])
    mixed = code.emit(vector, f"select {truths} %usual, {vector} %quick, {vector} {slow.name}")
    head = ", ".join(f"{vector} %{argument}" for argument in (*arguments, "quick"))
    return "\n".join(
        [
            f"define internal {vector} @{name}_chosen{lanes}({head}, {truths} %usual) alwaysinline {_PURE} {_WIDE} {{",
            "entry:", *begun, *addresses,
            f"  %bits = bitcast {truths} %usual to {bits}",
            f"  %all = icmp eq {bits} %bits, -1",
            "  br i1 %all, label %end, label %other",
            "other:", *code.lines, "  br label %end",
            "end:",
            f"  %value = phi {vector} [ %quick, %entry ], [ {mixed.name}, %other ]",
            f"  ret {vector} %value",
            "}",
        ]
    )  # fmt: skip


def kept(number: str, names: list[tuple[str, int]]) -> str:
    """Variants stay until the vectoriser calls them, and the function itself as it is: its arguments may be constant.

    Args:
        names: of functions, with their numbers of arguments.
    """
    if not names:
        return ""
    listed = []
    for name, arguments in names:
        vectors = [(f"<{n} x {number}>", f"<{n} x i1>", str(n)) for n in _LANES[number]]
        for value, truth, suffix in ((number, "i1", ""), *vectors):
            symbol = f"@{name}_chosen{suffix}"
            if pointer("i8") != "ptr":
                type = f"{value} ({', '.join([value] * (arguments + 1))}, {truth})*"
                symbol = f"bitcast ({type} {symbol} to i8*)"
            listed.append(f"{pointer('i8')} {symbol}")
    array = f"[{len(listed)} x {pointer('i8')}] [{', '.join(listed)}]"
    return f'@llvm.compiler.used = appending global {array}, section "llvm.metadata"'
