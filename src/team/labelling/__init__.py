"""Labelling a folder of images from a few labels: embed, predict, look at the least sure, export.

The steps stand in files of their own: embed_folder → predict → folder (`label_folder`) → export.
"""
