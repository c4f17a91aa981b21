"""Registration of our models with transformers' Auto classes, as soon as those classes are loaded.

`AutoModel.register` takes a configuration class, and importing any of those loads torch, which `ctxsim --help` and an
ONNX surrogate do not need. So `import ctxsim_hf` registers what is loaded already and leaves a finder on
`sys.meta_path`, which registers the rest when transformers' registries and configuration classes are imported.
Transformers imports its modules lazily but through the ordinary import system, so the finder sees every import.
Registration itself imports nothing, so no import order is circular, and the code of a model is loaded when one is
opened.
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

_PACKAGE = "ctxsim_hf.context_models"
_DISCRIMINATOR = f"{_PACKAGE}.discriminator.modeling:ContextDiscriminatorModel"
_GENERATOR = f"{_PACKAGE}.seq2seq.modeling:ContextGeneratorModel"
_LIGHT_GENERATOR = f"{_PACKAGE}.light.modeling:LightContextGeneratorModel"

# Model type -> its configuration, and its model class for each registry.
OWN_MODELS = {
    "ctxsim_discriminator": (
        f"{_PACKAGE}.discriminator.configuration:ContextDiscriminatorConfig",
        {"MODEL_MAPPING": _DISCRIMINATOR},
    ),
    "ctxsim_generator": (
        f"{_PACKAGE}.seq2seq.configuration:ContextGeneratorConfig",
        {"MODEL_MAPPING": _GENERATOR, "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING": _GENERATOR},
    ),
    "ctxsim_light_generator": (
        f"{_PACKAGE}.light.configuration:LightContextGeneratorConfig",
        {"MODEL_MAPPING": _LIGHT_GENERATOR},
    ),
    "ctxsim_static": (
        "ctxsim_hf.encoder.static_encoder:StaticConfig",
        {"MODEL_MAPPING": "ctxsim_hf.encoder.modeling_surrogate:SurrogateModel"},
    ),
}

# Folder in transformers.models -> configuration class of an encoder whose checkpoints may be surrogates.
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
# Registry -> our class, which can wrap any of these encoders.
SURROGATES = {
    "MODEL_MAPPING": "ctxsim_hf.encoder.modeling_surrogate:SurrogateModel",
    "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING": "ctxsim_hf.encoder.modeling_cross_surrogate:CrossSurrogateModel",
}


def register_auto_classes() -> None:
    """Register our models with the Auto classes, now or when those are loaded. Repeated calls change nothing."""
    if not any(isinstance(finder, _RegisterWhenLoaded) for finder in sys.meta_path):
        sys.meta_path.insert(0, _RegisterWhenLoaded())
    _register_what_is_loaded()


class LazyClass:
    """A reference to a class, `module:name`, which is imported on first use."""

    def __init__(self, reference: str) -> None:
        self.module, self.__name__ = reference.split(":")

    def load(self) -> Any:
        return getattr(import_module(self.module), self.__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.load()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python looks these up by itself, even on a half-built object
            raise AttributeError(name)
        return getattr(self.load(), name)


class SurrogateChooser:
    """Opens a model type of transformers: with our class if the checkpoint names it in `architectures`, with that of
    transformers otherwise.

    Auto classes can choose among a tuple of classes by themselves, but fail if `architectures` is None, as it is in
    every new configuration.
    """

    def __init__(self, registry: str, ours: str) -> None:
        self.registry, self.ours = registry, LazyClass(ours)
        self.__name__ = self.ours.__name__
        # With trust_remote_code, the Auto classes prefer a checkpoint's own code over classes of transformers, but not
        # over classes of other modules. This object stands for classes of transformers too, so it counts as one.
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
    """Return the class of transformers for a model type, or None: `("MODEL_MAPPING", "bert")` gives BertModel."""
    name = getattr(import_module(MODEL_REGISTRIES), f"{registry}_NAMES").get(model_type)
    return None if name is None else getattr(import_module("transformers"), name)


class _RegisterWhenLoaded(MetaPathFinder):
    """Finds the modules that registration waits for, and registers our models after each is executed."""

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
    """Yield a registry, a configuration class as `module:name`, and the object that opens it."""
    for configuration, models in OWN_MODELS.values():
        for registry, model in models.items():
            yield registry, configuration, LazyClass(model)
    for registry, ours in SURROGATES.items():
        for folder, name in ENCODERS.items():
            configuration = f"transformers.models.{folder}.configuration_{folder}:{name}"
            yield registry, configuration, SurrogateChooser(registry, ours)


_ENTRIES = tuple(_entries())
_AWAITED = {CONFIG_REGISTRY, MODEL_REGISTRIES, *(configuration.split(":")[0] for _, configuration, _ in _ENTRIES)}


def _register_what_is_loaded() -> None:
    configs = _loaded(f"{CONFIG_REGISTRY}:CONFIG_MAPPING")
    if configs is not None:
        for model_type, (configuration, _) in OWN_MODELS.items():
            configs.register(model_type, LazyClass(configuration), exist_ok=True)
    for registry, configuration, model in _ENTRIES:
        models, key = _loaded(f"{MODEL_REGISTRIES}:{registry}"), _loaded(configuration)
        if models is not None and key is not None:
            models.register(key, model, exist_ok=True)


def _loaded(reference: str) -> Any:
    """Return the object `module:name`, or None if it is not there yet; a module may be half executed."""
    module, name = reference.split(":")
    return getattr(sys.modules.get(module), name, None)
