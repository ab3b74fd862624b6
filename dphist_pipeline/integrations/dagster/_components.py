"""What makes a component of specs: attributes of a `defs.yaml`, checked whole, and mistakes with file and line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field, create_model

from dphist_pipeline.errors import DphistError, Refused
from dphist_pipeline.spec.loading import folder_of_spec, templates_around
from dphist_pipeline.spec.mistakes import SpecError

Schema = Callable[[], Mapping[str, Any]]


def specs_refused(errors: Sequence[SpecError]) -> Refused:
    """Mistakes in several files of a project, told together."""
    return Refused("\n\n".join(["mistakes in specs:", *map(str, errors)]), code="specs_refused")


class SpecComponent(dg.Component):
    """A component that is made of specs: the attributes of a `defs.yaml`, checked whole when it is loaded."""

    attributes: ClassVar[type[BaseModel]]

    def __init__(self, specs: Sequence[Any], wrong: SpecError | None = None) -> None:
        """A component of these specs, or of mistakes, which are told once all files of a project are loaded."""
        self.specs, self.wrong = tuple(specs), wrong

    @property
    def spec(self) -> Any:
        """The spec, where the file makes one."""
        (spec,) = self.specs
        return spec

    @classmethod
    def checked(
        cls,
        attributes: Mapping[str, Any],
        base: Path,
        problems: Sequence[tuple[str, str]],
        variables: Mapping[str, object],
    ) -> Sequence[Any]:
        """The specs in a mapping whose templates are not resolved yet.

        `problems` are mistakes around the attributes, for the same message. A module of the project declares variables.
        """
        raise NotImplementedError

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """The attributes that a `defs.yaml` may hold; `load` checks them."""
        return cls.attributes

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """Checks all specs of a file; what is wrong is told by `build_defs`, together with other files' mistakes."""
        fields = attributes.model_dump(exclude_unset=True) if attributes else {}
        # Dagster would resolve `{{ env.X }}` in `post_processing` and publish it in tags and metadata. The document is
        # checked as Dagster read it, before it resolves anything; a component made in Python has none.
        document = getattr(context.component_decl, "component_file_model", None)
        around = templates_around(document.model_dump()) if isinstance(document, BaseModel) else []
        file = Path(context.path) / "defs.yaml"
        try:
            return cls(cls.checked(fields, folder_of_spec(file), around, _variables(context)))
        except SpecError as error:
            mistakes = _with_lines(error, context)
        if around:
            raise mistakes
        return cls((), mistakes)

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The definitions of all specs; mistakes of all files stop the code location with one message."""
        if self.wrong is not None:
            raise _all_wrong(self.wrong, context)
        return dg.Definitions.merge(*(self.definitions_of(spec) for spec in self.specs))

    def definitions_of(self, spec: Any) -> dg.Definitions:
        """The definitions of one spec."""
        raise NotImplementedError

    def get_asset_spec(self, spec: dg.AssetSpec) -> dg.AssetSpec:
        """A hook for subclasses: the asset as it will be defined."""
        return spec


def attributes_model(component: str, spec: type[BaseModel], also: Sequence[str], schema: Schema) -> Any:
    """The attributes of a component as Dagster reads them: any value, as it stands in the file.

    The spec's own rules resolve templates and keep "1" text, so nothing is checked here. Only the JSON schema is
    strict, for editors and `dg check yaml`: `schema` gives its `properties` by field, `required` and more.
    """
    fields: dict[str, Any] = {
        name: (Any, Field(None, description=f"See the spec reference: {name}")) for name in (*spec.model_fields, *also)
    }

    def strict(json_schema: dict[str, Any]) -> None:
        more = dict(schema())
        for name, schema_of_field in more.pop("properties", {}).items():
            json_schema["properties"][name] = {"description": f"See the spec reference: {name}", **schema_of_field}
        json_schema.update({"additionalProperties": False, **more})

    config = ConfigDict(extra="allow", json_schema_extra=strict)
    return create_model(f"{component}Attributes", __config__=config, **fields)


def _variables(context: dg.ComponentLoadContext) -> dict[str, object]:
    """What a project's `template_vars_module` declares, and its component's class: all that is not Dagster's own."""
    own = dg.ResolutionContext.default().scope
    return {name: value for name, value in context.resolution_context.scope.items() if name not in own}


def _all_wrong(mistakes: SpecError, context: dg.ComponentLoadContext) -> DphistError:
    if mistakes.file is None:  # made in Python
        return mistakes
    # Every file of a project is loaded before the definitions of one are built.
    everywhere = context.component_tree.get_all_components(of_type=SpecComponent)
    errors = [component.wrong for component in everywhere if component.wrong is not None]
    return specs_refused(errors) if len(errors) > 1 else mistakes


def _with_lines(error: SpecError, context: dg.ComponentLoadContext) -> SpecError:
    """The same mistakes, with the file and the line of each, where a file is known."""
    tree = context.resolution_context.source_position_tree
    if tree is None:
        return error
    problems = []
    for where, problem in error.problems:
        node = tree
        for step in _steps(where):
            if step not in node.children:
                break
            node = node.children[step]
        problems.append((f"line {node.position.start.line}, {where}", problem))
    return SpecError(problems, tree.position.filename, error.of_what)


def _steps(place: str) -> Iterator[str | int]:
    """The steps of a place such as `attributes.axes[1].values`."""
    for word, number in re.findall(r"([A-Za-z_]\w*)|\[(\d+)\]", place):
        yield word or int(number)
