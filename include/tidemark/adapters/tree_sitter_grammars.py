"""What to look for in the syntax tree of each language, by the node types of its grammar."""

from dataclasses import dataclass, field

NAME_FIELDS = ("name", "property", "declarator", "left", "key", "function", "type")
"""Where a node keeps the name of what it defines; the first that there is."""
NAME_TYPES = frozenset({"object_reference"})
"""Nodes that are names where there is no field for one."""
BODY_FIELDS = ("body", "value")
BODY_TYPES = frozenset(
    {"struct_type", "interface_type", "column_definitions", "create_query", "function_body", "procedure_body"}
)  # fmt: skip
"""Nodes that are bodies where there is no field for one."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a definition looks: its kind, and the nodes from its own down to the one that has the body.

    steps: for each level down, the types of which a child is taken. Without any the node has the body itself.
    bare: it is one without a body too; what only names something defined elsewhere has none.
    """

    kind: str
    steps: tuple[frozenset[str], ...] = ()
    bare: bool = False


Shapes = dict[str, tuple[Shape, ...]]


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language's grammar.

    module, function: what gives the language.
    shapes: of definitions, by the type of their outermost node.
    attached: types of what belongs to the definition below it (comments, decorators).
    units: types of what reads as one although it may run over several lines.
    """

    module: str
    shapes: Shapes
    attached: frozenset[str]
    units: frozenset[str] = field(repr=False)
    function: str = "language"


def _types(names: str) -> frozenset[str]:
    return frozenset(names.split())


def _shapes(**kinds: str) -> Shapes:
    """Of nodes that have their body themselves: the node types of each kind."""
    return {name: (Shape(kind),) for kind, names in kinds.items() for name in names.split()}


def _below(kind: str, *steps: str, bare: bool = False) -> Shape:
    return Shape(kind, tuple(_types(step) for step in steps), bare)


_PYTHON = Grammar(
    "tree_sitter_python",
    _shapes(**{"class": "class_definition", "function": "function_definition"}),
    _types("comment decorator"),
    _types(
        "string concatenated_string argument_list parameters list dictionary set tuple subscript"
        " parenthesized_expression list_comprehension dictionary_comprehension set_comprehension"
        " generator_expression expression_statement return_statement import_from_statement assert_statement"
        " raise_statement delete_statement type_alias_statement"
    ),
)

_FUNCTIONS = "arrow_function function_expression generator_function"
_JS_SHAPES = _shapes(
    **{
        "class": "class_declaration",
        "function": "function_declaration generator_function_declaration method_definition",
    }
) | {
    "lexical_declaration": (
        _below("function", "variable_declarator", _FUNCTIONS),
        _below("class", "variable_declarator", "class"),
    ),
    "variable_declaration": (_below("function", "variable_declarator", _FUNCTIONS),),
    "pair": (_below("function", _FUNCTIONS),),
    "field_definition": (_below("function", _FUNCTIONS),),
    "public_field_definition": (_below("function", _FUNCTIONS),),
    "expression_statement": (
        _below("function", "assignment_expression", _FUNCTIONS),
        _below("class", "assignment_expression", "class"),
        _below("block", "call_expression", "arguments", _FUNCTIONS),
    ),
}
_JS_UNITS = _types(
    "comment arguments formal_parameters array object template_string parenthesized_expression"
    " import_statement export_clause object_pattern array_pattern return_statement throw_statement"
)
_JSX = _types("jsx_element jsx_self_closing_element jsx_opening_element")
_JS_ATTACHED = _types("comment decorator")
_TS_SHAPES = _JS_SHAPES | _shapes(
    **{
        "class": "abstract_class_declaration interface_declaration enum_declaration"
        " internal_module module",
        "type": "type_alias_declaration",
    }
)
_TS_UNITS = _JS_UNITS | _types("object_type union_type type_arguments type_parameters")

_GO = Grammar(
    "tree_sitter_go",
    _shapes(function="function_declaration method_declaration")
    | {
        "type_declaration": (_below("class", "type_spec"),),
        "expression_statement": (_below("block", "call_expression", "argument_list", "func_literal"),),
    },
    _types("comment"),
    _types(
        "comment argument_list parameter_list literal_value raw_string_literal parenthesized_expression"
        " import_declaration const_declaration var_declaration return_statement"
    ),
)  # fmt: skip

_JAVA = Grammar(
    "tree_sitter_java",
    _shapes(
        **{
            "class": "class_declaration interface_declaration enum_declaration record_declaration"
            " annotation_type_declaration",
            "function": "method_declaration constructor_declaration compact_constructor_declaration",
        }
    ),
    _types("line_comment block_comment marker_annotation annotation"),
    _types(
        "block_comment argument_list formal_parameters array_initializer parenthesized_expression"
        " string_literal field_declaration local_variable_declaration return_statement"
    ),
)

_C_SHAPES = _shapes(
    **{
        "class": "struct_specifier union_specifier enum_specifier",
        "function": "function_definition",
    }
) | {
    "type_definition": (_below("class", "struct_specifier union_specifier enum_specifier"),),
    "linkage_specification": (Shape("block"),),
}
_C_UNITS = _types(
    "comment argument_list parameter_list initializer_list parenthesized_expression string_literal"
    " concatenated_string preproc_def preproc_function_def return_statement"
)
_CPP_SHAPES = (
    _C_SHAPES
    | _shapes(**{"class": "class_specifier namespace_definition"})
    | {
        "template_declaration": (
            _below("function", "function_definition"),
            _below("class", "class_specifier struct_specifier union_specifier"),
        )
    }
)

_RUST = Grammar(
    "tree_sitter_rust",
    _shapes(
        **{
            "class": "struct_item enum_item union_item trait_item impl_item mod_item foreign_mod_item",
            "function": "function_item",
        }
    )
    | {"macro_definition": (Shape("function", bare=True),)},
    _types("line_comment block_comment attribute_item"),
    _types(
        "block_comment arguments parameters array_expression tuple_expression field_initializer_list"
        " parenthesized_expression string_literal raw_string_literal token_tree use_declaration"
        " type_arguments type_parameters where_clause"
    ),
)

_SQL = Grammar(
    "tree_sitter_sql",
    {
        "statement": (
            _below("class", "create_table create_view create_materialized_view", bare=True),
            _below("function", "create_function create_procedure create_trigger", bare=True),
            _below("type", "create_type create_index create_sequence", bare=True),
        )
    },
    _types("comment marginalia"),
    _types("marginalia statement function_arguments list subquery cte column_definitions"),
)

_BASH = Grammar(
    "tree_sitter_bash",
    _shapes(function="function_definition"),
    _types("comment"),
    _types(
        "string raw_string array command pipeline redirected_statement test_command command_substitution"
    ),
)

GRAMMARS = {
    "python": _PYTHON,
    "javascript": Grammar("tree_sitter_javascript", _JS_SHAPES, _JS_ATTACHED, _JS_UNITS | _JSX),
    "typescript": Grammar(
        "tree_sitter_typescript", _TS_SHAPES, _JS_ATTACHED, _TS_UNITS, "language_typescript"
    ),
    "tsx": Grammar(
        "tree_sitter_typescript", _TS_SHAPES, _JS_ATTACHED, _TS_UNITS | _JSX, "language_tsx"
    ),
    "go": _GO,
    "java": _JAVA,
    "c": Grammar("tree_sitter_c", _C_SHAPES, _types("comment"), _C_UNITS),
    "cpp": Grammar(
        "tree_sitter_cpp",
        _CPP_SHAPES,
        _types("comment"),
        _C_UNITS | _types("raw_string_literal template_argument_list template_parameter_list"),
    ),
    "rust": _RUST,
    "sql": _SQL,
    "bash": _BASH,
}
"""By the canonical name of the language."""
