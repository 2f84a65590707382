"""Sizes and rates of filters: the public names of ``lakebloom.sbbf.sizing``."""

from lakebloom.sbbf.sizing import SizingRule, auto_fpp, foldable_blocks, fpp, layer_fpps, num_blocks

__all__ = ["SizingRule", "auto_fpp", "foldable_blocks", "fpp", "layer_fpps", "num_blocks"]
