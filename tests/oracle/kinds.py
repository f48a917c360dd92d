"""The models that the oracle knows, by the names of their kinds."""
import bert
import cells
import evolved_transformer
import gpt
import picture_space
import subnet
import transformer
import vit
import wide_resnet

KINDS = {"gpt": gpt.Decoder, "bert": bert.Bert, "transformer": transformer.EncoderDecoder, "vit": vit.VisionTransformer,
         "evolved_transformer": evolved_transformer.EvolvedTransformer, "wide_resnet": wide_resnet.WideResnet,
         "subnet_of_texts": subnet.OfTexts, "subnet_of_pairs": subnet.OfPairs, "cells": cells.Cells,
         "picture_space": picture_space.PictureSpace}
