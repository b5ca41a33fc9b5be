"""CLUE3D: showers of the layer clusters of a calorimeter with many layers."""
