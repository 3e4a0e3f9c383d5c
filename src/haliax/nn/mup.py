"""Parametrisations of layers: how the scale of weights, outputs and learning rates follows from the sizes of axes.

The standard parametrisation puts the width of a layer into its initial weights. The maximal update parametrisation
(muP) also puts it into outputs and learning rates, so that what was tuned for a narrow model holds for a wide one.

Source:
    Yang et al., "Tensor Programs V: Tuning Large Neural Networks via Zero-Shot Hyperparameter Transfer", 2022.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod

from haliax._src.axis import AxisSpec, axis_size


def _width(axes: AxisSpec) -> int:
    """The number of elements along some axes; 1 if there are none, where no weight is left to be scaled."""
    return max(axis_size(axes), 1)


class AbstractReparam(ABC):
    """How to scale one kind of layer."""

    @staticmethod
    @abstractmethod
    def init_scale(In: AxisSpec, Out: AxisSpec) -> float:
        """The standard deviation of the initial weights of a layer from `In` to `Out`."""

    @property
    def active_scale(self) -> float:
        """The factor on the layer's output: 1, unless a parametrisation says otherwise."""
        return 1

    @property
    def lr_scale(self) -> float:
        """The factor on the learning rate of the layer's weights: 1, unless a parametrisation says otherwise."""
        return 1


@dataclasses.dataclass(frozen=True)
class AbstractLinearReparam(AbstractReparam):
    """How to scale a linear layer.

    Args:
        In: The input axes.
        Out: The output axes.
    """

    In: AxisSpec
    Out: AxisSpec


class LinearStandardParam(AbstractLinearReparam):
    """The standard parametrisation: initial weights by the square root of the number of inputs."""

    @staticmethod
    def init_scale(In: AxisSpec, Out: AxisSpec) -> float:
        """One over the square root of the size of `In`."""
        return 1 / _width(In) ** 0.5


class InputLinearMup(AbstractLinearReparam):
    """muP for a layer from an input of fixed size to a hidden state."""

    @staticmethod
    def init_scale(In: AxisSpec, Out: AxisSpec) -> float:
        """1."""
        return 1


class HiddenLinearMup(AbstractLinearReparam):
    """muP for a layer between hidden states."""

    @staticmethod
    def init_scale(In: AxisSpec, Out: AxisSpec) -> float:
        """One over the square root of the size of `In`."""
        return 1 / _width(In) ** 0.5

    @property
    def lr_scale(self) -> float:
        """One over the size of `In`."""
        return 1 / _width(self.In)


class OutputLinearMup(AbstractLinearReparam):
    """muP for a layer from a hidden state to an output of fixed size."""

    @staticmethod
    def init_scale(In: AxisSpec, Out: AxisSpec) -> float:
        """1."""
        return 1

    @property
    def active_scale(self) -> float:
        """One over the size of `In`."""
        return 1 / _width(self.In)


@dataclasses.dataclass(frozen=True)
class AbstractEmbeddingReparam(AbstractReparam):
    """How to scale an embedding.

    Args:
        Embed: The axes of an embedding.
        Vocab: The axis of the vocabulary.
    """

    Embed: AxisSpec
    Vocab: AxisSpec

    @property
    @abstractmethod
    def unembed_active_scale(self) -> float:
        """The factor on the logits."""


class EmbeddingStandardParam(AbstractEmbeddingReparam):
    """The standard parametrisation: initial weights by the size of an embedding."""

    @staticmethod
    def init_scale(In: AxisSpec, Out: AxisSpec) -> float:
        """One over the size of `Out`, the axes of an embedding."""
        return 1 / _width(Out)

    @property
    def unembed_active_scale(self) -> float:
        """1."""
        return 1


class EmbeddingMup(AbstractEmbeddingReparam):
    """muP for an embedding."""

    @staticmethod
    def init_scale(In: AxisSpec, Out: AxisSpec) -> float:
        """1."""
        return 1

    @property
    def unembed_active_scale(self) -> float:
        """One over the size of an embedding."""
        return 1 / _width(self.Embed)


class ReparamEnabled(ABC):
    """A layer that knows its parametrisation."""

    @property
    @abstractmethod
    def reparam(self) -> AbstractReparam:
        """The parametrisation, for the axes of this layer."""
