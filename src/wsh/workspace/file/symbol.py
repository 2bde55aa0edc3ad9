"""Definitions in a syntax tree: where they lie, what they are, what they are called.

One walk serves all languages; a `DefinitionShape` says for each which nodes define something, which hold other definitions and
which are only wrapping. The walk enters containers and wrappers alone, never a function's body, so it costs little
beside the parse. It knows nothing of chunks, files or the index.

Hazard: in tree-sitter 0.26 `Point.row` returns a number without owning it, and the interpreter crashes later. Points
are read by position here, `start_point[0]`, which is sound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tree_sitter import Node

KINDS = (
    "function",
    "method",
    "class",
    "interface",
    "struct",
    "enum",
    "trait",
    "impl",
    "type",
    "variable",
    "constant",
    "property",
    "macro",
    "module",
    "namespace",
    "rule",
    "table",
    "key",
    "heading",
    "block",
    "command",
)

_CONTAINERS = frozenset({"class", "interface", "struct", "enum", "trait", "impl", "module", "namespace"})
_MAX_DEPTH = 24
_MAX_NAME = 200


@dataclass(frozen=True)
class DefinitionShape:
    """How one language writes definitions, by node type."""

    defines: dict[str, str]
    through: frozenset[str] = frozenset()
    wraps: frozenset[str] = frozenset()
    comments: frozenset[str] = frozenset({"comment", "line_comment", "block_comment", "multiline_comment"})


@dataclass(slots=True)
class Symbol:
    """A definition. Bytes and rows (from 0) include the comments directly above it."""

    kind: str
    name: str
    start_byte: int
    end_byte: int
    start_row: int
    end_row: int
    children: list[Symbol] = field(default_factory=list)


def _shape(defines: str, through: str = "", wraps: str = "") -> DefinitionShape:
    table: dict[str, str] = {}
    for group in defines.split():
        kind, _, types = group.partition(":")
        for node_type in types.split(","):
            table[node_type] = kind
    return DefinitionShape(table, frozenset(through.split()) | {"ERROR"}, frozenset(wraps.split()))


_JS = (
    "function:function_declaration,generator_function_declaration,function_signature class:class_declaration,"
    "abstract_class_declaration method:method_definition,method_signature,abstract_method_signature "
    "interface:interface_declaration type:type_alias_declaration enum:enum_declaration "
    "namespace:internal_module,module variable:lexical_declaration,variable_declaration"
)
_JS_THROUGH = (
    "expression_statement class_body interface_body object_type statement_block ambient_declaration if_statement"
)
_C = (
    "function:function_definition,declaration struct:struct_specifier,union_specifier enum:enum_specifier "
    "type:type_definition,alias_declaration,concept_definition macro:preproc_def,preproc_function_def "
    "class:class_specifier namespace:namespace_definition"
)
_C_THROUGH = (
    "preproc_if preproc_ifdef preproc_else preproc_elif linkage_specification declaration_list "
    "field_declaration_list translation_unit"
)

SHAPES: dict[str, DefinitionShape] = {
    "bash": _shape("function:function_definition variable:variable_assignment", "if_statement"),
    "c": _shape(_C, _C_THROUGH),
    "cpp": _shape(_C, _C_THROUGH, "template_declaration"),
    "csharp": _shape(
        "namespace:namespace_declaration class:class_declaration,record_declaration interface:interface_declaration "
        "struct:struct_declaration,record_struct_declaration enum:enum_declaration type:delegate_declaration "
        "method:method_declaration,constructor_declaration,destructor_declaration,operator_declaration "
        "property:property_declaration,indexer_declaration,event_declaration",
        "declaration_list file_scoped_namespace_declaration preproc_if",
    ),
    "css": _shape("rule:rule_set,keyframes_statement", "media_statement block supports_statement"),
    "go": _shape(
        "function:function_declaration method:method_declaration type:type_declaration constant:const_declaration "
        "variable:var_declaration"
    ),
    "java": _shape(
        "class:class_declaration,record_declaration interface:interface_declaration,annotation_type_declaration "
        "enum:enum_declaration method:method_declaration,constructor_declaration,compact_constructor_declaration",
        "class_body interface_body enum_body enum_body_declarations annotation_type_body",
    ),
    "javascript": _shape(_JS, _JS_THROUGH, "export_statement"),
    "json": _shape("key:pair", "object document"),
    "kotlin": _shape(
        "class:class_declaration,object_declaration,companion_object function:function_declaration "
        "type:type_alias variable:property_declaration",
        "class_body enum_class_body",
    ),
    "lua": _shape("function:function_declaration variable:variable_declaration,assignment_statement"),
    "php": _shape(
        "function:function_definition class:class_declaration interface:interface_declaration trait:trait_declaration "
        "enum:enum_declaration method:method_declaration constant:const_declaration namespace:namespace_definition",
        "declaration_list enum_declaration_list compound_statement if_statement",
    ),
    "python": _shape(
        "function:function_definition class:class_definition type:type_alias_statement variable:expression_statement",
        "block if_statement else_clause elif_clause try_statement except_clause finally_clause with_statement",
        "decorated_definition",
    ),
    "ruby": _shape(
        "class:class module:module method:method,singleton_method constant:assignment", "body_statement singleton_class"
    ),
    "rust": _shape(
        "function:function_item,function_signature_item struct:struct_item,union_item enum:enum_item trait:trait_item "
        "impl:impl_item module:mod_item macro:macro_definition constant:const_item,static_item type:type_item",
        "declaration_list foreign_mod_item",
    ),
    "scala": _shape(
        "class:class_definition module:object_definition,package_object trait:trait_definition enum:enum_definition "
        "function:function_definition,function_declaration type:type_definition,given_definition "
        "variable:val_definition,var_definition",
        "template_body enum_body package_clause extension_definition",
    ),
    "sql": _shape(
        "table:create_table,create_view,create_materialized_view function:create_function,create_procedure,"
        "create_trigger type:create_type key:create_index",
        "statement",
    ),
    "swift": _shape(
        "class:class_declaration interface:protocol_declaration function:function_declaration,"
        "protocol_function_declaration,init_declaration,deinit_declaration,subscript_declaration "
        "type:typealias_declaration variable:property_declaration",
        "class_body protocol_body enum_class_body",
    ),
    "toml": _shape("table:table,table_array_element key:pair"),
    "tsx": _shape(_JS, _JS_THROUGH, "export_statement"),
    "typescript": _shape(_JS, _JS_THROUGH, "export_statement"),
    "yaml": _shape("key:block_mapping_pair", "document block_node block_mapping stream"),
}

_DECORATIONS = frozenset({"attribute_item", "inner_attribute_item", "decorator", "annotation", "attribute_list"})
_NAME_ENDS = frozenset(
    "identifier field_identifier type_identifier qualified_identifier destructor_name operator_name "
    "property_identifier simple_identifier constant variable_name name".split()
)
_FUNCTION_VALUES = frozenset(
    "arrow_function function_expression function generator_function function_definition lambda".split()
)
_HTML_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


def find_symbols(root: Node, language: str) -> list[Symbol]:
    """The definitions below `root`, outermost first, in order; nested ones are in `children`."""
    if language == "html":
        return _html_sections(root)
    shape = SHAPES.get(language)
    return [] if shape is None else list(_walk(root, shape, language, None, 0))


def _walk(parent: Node, shape: DefinitionShape, language: str, inside: str | None, depth: int) -> Iterator[Symbol]:
    above: Node | None = None  # first of the comments directly above the next definition
    above_end = -1
    for node in parent.named_children:
        node_type = node.type
        if node_type in shape.comments or node_type in _DECORATIONS:
            if above is None or node.start_point[0] > above_end + 1:
                above = node
            above_end = node.end_point[0]
            continue
        found = _define(node, node_type, shape, language, inside, depth)
        if found is not None:
            if above is not None and above_end + 1 >= found.start_row > above.start_point[0]:
                found.start_byte, found.start_row = above.start_byte, above.start_point[0]
            yield found
        elif node_type in shape.through and depth < _MAX_DEPTH:
            yield from _walk(node, shape, language, inside, depth + 1)
        above = None


def _define(
    node: Node, node_type: str, shape: DefinitionShape, language: str, inside: str | None, depth: int
) -> Symbol | None:
    inner = node
    if node_type in shape.wraps:
        for child in node.named_children:
            if child.type in shape.defines:
                inner = child
        if inner is node:
            return None
    kind = shape.defines.get(inner.type)
    if kind is None:
        return None
    named = _name(inner, kind, language, inside)
    if named is None:
        return None
    kind, name = named
    symbol = Symbol(kind, name[:_MAX_NAME], node.start_byte, node.end_byte, node.start_point[0], node.end_point[0])
    if kind in _CONTAINERS and depth < _MAX_DEPTH:
        body = inner.child_by_field_name("body")
        symbol.children = list(_walk(inner if body is None else body, shape, language, kind, depth + 1))
    return symbol


def _html_sections(root: Node) -> list[Symbol]:
    """A section is a heading and what follows it up to the next one."""
    found: list[Symbol] = []
    todo = [root]
    while todo:
        node = todo.pop()
        if node.type == "element" and node.named_child_count:
            tag = node.named_children[0]
            name = tag.named_children[0] if tag.named_child_count else None
            if name is not None and _text(name).lower() in _HTML_HEADINGS:
                title = " ".join(_text(child) for child in node.named_children[1:-1])
                if title:
                    row, column = node.start_point[0], node.start_point[1]
                    start = node.start_byte - column
                    found.append(Symbol("heading", title[:_MAX_NAME], start, node.end_byte, row, row))
                continue
        if node.type in ("document", "element", "ERROR"):
            todo.extend(reversed(node.named_children))
    for section, following in zip(found, [*found[1:], None], strict=False):
        section.end_byte = root.end_byte if following is None else following.start_byte
        section.end_row = root.end_point[0] if following is None else following.start_row
    return found


def _name(node: Node, kind: str, language: str, inside: str | None) -> tuple[str, str] | None:
    """Kind and name of a defining node, or None when it defines nothing worth a chunk of its own."""
    special = _SPECIAL.get(node.type)
    if special is not None:
        return special(node, kind, language, inside)
    found = node.child_by_field_name("name")
    if found is None:
        found = node.child_by_field_name("key") or node.child_by_field_name("type")
    if found is None:
        found = next((c for c in node.named_children if c.type in _NAME_ENDS or c.type == "object_reference"), None)
    if found is None:
        return None
    if kind == "function" and inside in _CONTAINERS and inside not in ("module", "namespace"):
        kind = "method"
    return kind, _text(found)


def _text(node: Node) -> str:
    raw = node.text
    return "" if raw is None else " ".join(raw.decode("utf-8", "replace").split())


def _python_assignment(node: Node, kind: str, language: str, inside: str | None) -> tuple[str, str] | None:
    if language != "python" or inside is not None or node.named_child_count == 0:
        return None
    assignment = node.named_children[0]
    if assignment.type != "assignment":
        return None
    left = assignment.child_by_field_name("left")
    if left is None or left.type != "identifier":
        return None
    name = _text(left)
    return ("constant" if name.isupper() else "variable"), name


def _js_variables(node: Node, kind: str, language: str, inside: str | None) -> tuple[str, str] | None:
    if language == "lua":
        return _lua_variable(node, kind, language, inside)
    for child in node.named_children:
        if child.type == "variable_declarator":
            name, value = child.child_by_field_name("name"), child.child_by_field_name("value")
            if name is None or name.type != "identifier":
                return None
            if value is not None and value.type in _FUNCTION_VALUES:
                return "function", _text(name)
            if value is not None and value.type == "class":
                return "class", _text(name)
            text = _text(name)
            return ("constant" if text.isupper() else "variable"), text
    return None


def _lua_variable(node: Node, kind: str, language: str, inside: str | None) -> tuple[str, str] | None:
    raw = node.text or b""
    assigned = node if node.type == "assignment_statement" else next(iter(node.named_children), None)
    name = None if assigned is None else assigned.child_by_field_name("name")
    if name is None and assigned is not None:
        name = next(iter(assigned.named_children), None)
    if name is None:
        return None
    return ("function" if b"function" in raw[:200] else "variable"), _text(name)


def _c_declarator(node: Node, kind: str, language: str, inside: str | None) -> tuple[str, str] | None:
    """Functions, prototypes and typedefs of C and C++: the name hides in nested declarators."""
    if language not in ("c", "cpp"):
        return _plain_name(node, kind, inside)
    at = node.child_by_field_name("declarator")
    is_function = False
    for _ in range(12):
        if at is None:
            return None
        if at.type in ("function_declarator", "abstract_function_declarator"):
            is_function = True
        if at.type in _NAME_ENDS:
            break
        at = at.child_by_field_name("declarator") or next((c for c in at.named_children if c.type in _NAME_ENDS), None)
    if at is None or at.type not in _NAME_ENDS:
        return None
    if node.type == "declaration" and not is_function:
        return "variable", _text(at)
    if kind == "function" and inside in ("class", "struct"):
        kind = "method"
    return kind, _text(at)


def _plain_name(node: Node, kind: str, inside: str | None) -> tuple[str, str] | None:
    name = node.child_by_field_name("name")
    if name is None:
        return None
    return ("method" if kind == "function" and inside in ("class", "trait", "interface") else kind), _text(name)


def _with_body(node: Node, kind: str, language: str, inside: str | None) -> tuple[str, str] | None:
    """`struct x y;` uses a struct, `struct x {…}` defines one."""
    name = node.child_by_field_name("name")
    if name is None or node.child_by_field_name("body") is None:
        return None
    return kind, _text(name)


def _go_spec(node: Node, kind: str, language: str, inside: str | None) -> tuple[str, str] | None:
    for child in node.named_children:
        name = child.child_by_field_name("name")
        if name is None:
            continue
        body = child.child_by_field_name("type")
        if kind == "type" and body is not None:
            kind = {"struct_type": "struct", "interface_type": "interface"}.get(body.type, "type")
        return kind, _text(name)
    return None


def _css_rule(node: Node, kind: str, language: str, inside: str | None) -> tuple[str, str] | None:
    return (kind, _text(node.named_children[0])) if node.named_child_count else None


def _constant(node: Node, kind: str, language: str, inside: str | None) -> tuple[str, str] | None:
    """Ruby's and PHP's constants; other assignments are no definitions."""
    if language == "go":
        return _go_spec(node, kind, language, inside)
    left = node.child_by_field_name("left")
    if left is None:
        element = next(iter(node.named_children), None)
        left = None if element is None else next(iter(element.named_children), None)
    if left is None or left.type not in ("constant", "name"):
        return None
    return kind, _text(left)


def _data_key(node: Node, kind: str, language: str, inside: str | None) -> tuple[str, str] | None:
    found = node.child_by_field_name("key") or next(iter(node.named_children), None)
    return None if found is None else (kind, _text(found).strip("\"'"))


def _kotlin_property(node: Node, kind: str, language: str, inside: str | None) -> tuple[str, str] | None:
    if language == "csharp":
        return _plain_name(node, kind, inside)
    if inside is not None:
        return None
    name = node.child_by_field_name("name")
    if name is None:
        declared = next((c for c in node.named_children if c.type == "variable_declaration"), None)
        name = None if declared is None else next(iter(declared.named_children), None)
    return None if name is None else (kind, _text(name))


def _scala_value(node: Node, kind: str, language: str, inside: str | None) -> tuple[str, str] | None:
    pattern = node.child_by_field_name("pattern")
    return None if pattern is None or inside is not None else (kind, _text(pattern))


def _companion(node: Node, kind: str, language: str, inside: str | None) -> tuple[str, str] | None:
    name = node.child_by_field_name("name")
    return kind, "Companion" if name is None else _text(name)


_SPECIAL = {
    "expression_statement": _python_assignment,
    "lexical_declaration": _js_variables,
    "variable_declaration": _js_variables,
    "assignment_statement": _lua_variable,
    "function_definition": _c_declarator,
    "declaration": _c_declarator,
    "type_definition": _c_declarator,
    "struct_specifier": _with_body,
    "union_specifier": _with_body,
    "enum_specifier": _with_body,
    "class_specifier": _with_body,
    "type_declaration": _go_spec,
    "const_declaration": _constant,
    "var_declaration": _go_spec,
    "rule_set": _css_rule,
    "keyframes_statement": _css_rule,
    "assignment": _constant,
    "pair": _data_key,
    "block_mapping_pair": _data_key,
    "table": _data_key,
    "table_array_element": _data_key,
    "property_declaration": _kotlin_property,
    "val_definition": _scala_value,
    "var_definition": _scala_value,
    "companion_object": _companion,
}
