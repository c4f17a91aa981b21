"""Makes transformers' Auto classes open our models, as soon as those classes are loaded.

`AutoModel.register` wants a configuration class, and importing any of those loads torch, which `ctxsim --help` and an
encoder in ONNX never need. So `import ctxsim_hf` registers what is loaded already and leaves a finder on
`sys.meta_path`, which registers the rest when transformers' registries and the configurations, their keys, get loaded
by whoever needs them. Transformers imports its modules lazily but by the ordinary import system, so the finder sees
every one. Registering itself imports nothing: no order of imports ends in a circle, and a model's code is loaded when
one is opened.
"""

import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

CONFIG_REGISTRY = "transformers.models.auto.configuration_auto"
MODEL_REGISTRIES = "transformers.models.auto.modeling_auto"

_ROOM = "ctxsim_hf.context_models"
_DISCRIMINATOR = f"{_ROOM}.discriminator.modeling:ContextDiscriminatorModel"
_GENERATOR = f"{_ROOM}.seq2seq.modeling:ContextGeneratorModel"
_LIGHT_GENERATOR = f"{_ROOM}.light.modeling:LightContextGeneratorModel"

# Model type -> its configuration, and its model for each registry that opens it.
CONTEXT_MODELS = {
    "ctxsim_discriminator": (
        f"{_ROOM}.discriminator.configuration:ContextDiscriminatorConfig",
        {"MODEL_MAPPING": _DISCRIMINATOR},
    ),
    "ctxsim_generator": (
        f"{_ROOM}.seq2seq.configuration:ContextGeneratorConfig",
        {"MODEL_MAPPING": _GENERATOR, "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING": _GENERATOR},
    ),
    "ctxsim_light_generator": (
        f"{_ROOM}.light.configuration:LightContextGeneratorConfig",
        {"MODEL_MAPPING": _LIGHT_GENERATOR},
    ),
}

# Folder in transformers.models -> the configuration of an encoder whose checkpoints may be surrogates.
ENCODERS = {
    "albert": "AlbertConfig",
    "bert": "BertConfig",
    "camembert": "CamembertConfig",
    "convbert": "ConvBertConfig",
    "deberta": "DebertaConfig",
    "deberta_v2": "DebertaV2Config",
    "distilbert": "DistilBertConfig",
    "electra": "ElectraConfig",
    "ernie": "ErnieConfig",
    "eurobert": "EuroBertConfig",
    "megatron_bert": "MegatronBertConfig",
    "mobilebert": "MobileBertConfig",
    "modernbert": "ModernBertConfig",
    "mpnet": "MPNetConfig",
    "nomic_bert": "NomicBertConfig",
    "rembert": "RemBertConfig",
    "roberta": "RobertaConfig",
    "roformer": "RoFormerConfig",
    "xlm_roberta": "XLMRobertaConfig",
    "xlm_roberta_xl": "XLMRobertaXLConfig",
    "xmod": "XmodConfig",
}
# Our class for each registry, and the encoders that it may be made of.
SURROGATES = {
    "MODEL_MAPPING": ("ctxsim_hf.encoder.modeling_surrogate:SurrogateModel", tuple(ENCODERS)),
    "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING": (
        "ctxsim_hf.encoder.modeling_surrogate:CrossSurrogateModel",
        ("roberta",),
    ),
}


def register_auto_classes() -> None:
    """Register our models with the Auto classes, now or when they get loaded. Calling it again changes nothing."""
    if not any(isinstance(finder, _RegisterWhenLoaded) for finder in sys.meta_path):
        sys.meta_path.insert(0, _RegisterWhenLoaded())
    _register_what_is_loaded()


class LazyClass:
    """A class by its module and name, `module:name`, imported when it is first used."""

    def __init__(self, where: str) -> None:
        self.module, self.__name__ = where.split(":")

    def load(self) -> Any:
        return getattr(import_module(self.module), self.__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.load()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # which Python asks for by itself, also of an object that is not yet whole
            raise AttributeError(name)
        return getattr(self.load(), name)


class SurrogateChooser:
    """What opens a model type of transformers: our class for a checkpoint that names it in `architectures`, and
    transformers' own for any other.

    Auto classes can choose among a tuple of classes by themselves, but fail wherever `architectures` is None, as in
    every new configuration.
    """

    def __init__(self, registry: str, ours: str) -> None:
        self.registry, self.ours = registry, LazyClass(ours)
        self.__name__ = self.ours.__name__
        # The Auto classes read here which code has precedence where a user trusts a checkpoint's own. Classes of other
        # modules have it over the checkpoint's, transformers' have not. This object speaks for transformers' too.
        self.__module__ = MODEL_REGISTRIES

    def choose(self, config: Any) -> Any:
        if self.__name__ in (config.architectures or ()):
            return self.ours.load()
        return transformers_class(self.registry, config.model_type)

    def from_pretrained(self, *args: Any, config: Any, **kwargs: Any) -> Any:
        return self.choose(config).from_pretrained(*args, config=config, **kwargs)

    def _from_config(self, config: Any, **kwargs: Any) -> Any:
        return self.choose(config)._from_config(config, **kwargs)


def transformers_class(registry: str, model_type: str) -> Any:
    """Return transformers' own class for a model type, None if it has none: `("MODEL_MAPPING", "bert")` gives
    BertModel."""
    name = getattr(import_module(MODEL_REGISTRIES), f"{registry}_NAMES").get(model_type)
    return None if name is None else getattr(import_module("transformers"), name)


class _RegisterWhenLoaded(MetaPathFinder):
    """Finds the modules that registration waits for, and registers after each of them is executed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _AWAITED:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                _register_what_is_loaded()

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


def _entries() -> Iterator[tuple[str, str, Any]]:
    """Yield a registry, a configuration as `module:name`, and what opens it."""
    for configuration, models in CONTEXT_MODELS.values():
        for registry, model in models.items():
            yield registry, configuration, LazyClass(model)
    for registry, (ours, encoders) in SURROGATES.items():
        for folder in encoders:
            configuration = f"transformers.models.{folder}.configuration_{folder}:{ENCODERS[folder]}"
            yield registry, configuration, SurrogateChooser(registry, ours)


_ENTRIES = tuple(_entries())
_AWAITED = {CONFIG_REGISTRY, MODEL_REGISTRIES, *(configuration.split(":")[0] for _, configuration, _ in _ENTRIES)}


def _register_what_is_loaded() -> None:
    configs = _loaded(f"{CONFIG_REGISTRY}:CONFIG_MAPPING")
    if configs is not None:
        for model_type, (configuration, _) in CONTEXT_MODELS.items():
            configs.register(model_type, LazyClass(configuration), exist_ok=True)
    for registry, configuration, model in _ENTRIES:
        models, key = _loaded(f"{MODEL_REGISTRIES}:{registry}"), _loaded(configuration)
        if models is not None and key is not None:
            models.register(key, model, exist_ok=True)


def _loaded(where: str) -> Any:
    """Return what `module:name` stands for, None if it is not there yet; a module may be half executed."""
    module, name = where.split(":")
    return getattr(sys.modules.get(module), name, None)
