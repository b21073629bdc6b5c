"""Words for the invented articles: names of people, their trades, the titles of their works."""

from __future__ import annotations

from agentgym_envs.webarena.sites.words import words

WOMEN = words("""
    Agatha Antonia Augusta Benedikta Cordelia Dorothea Eleonore Euphemia Florence Gwendolyn Hedwig Henrietta Isolde
    Josephine Lavinia Leopoldine Marguerite Mathilda Octavia Petronella Philippa Rosalind Sophronia Theodora Ulrike
    Wilhelmina Winifred
""")
MEN = words("""
    Adelbert Albrecht Ambrose Barnaby Casimir Cornelius Edmund Ernst Ferdinand Gerhard Harald Isidore Jakob Konrad
    Leopold Magnus Nathaniel Oswald Percival Reinhold Rupert Sebastian Tobias Ulrich Valentin Willem Zacharias
""")
LAST_NAMES = words("""
    Aldersen Ashworthy Barnstorf Brackenbury Carstairs Dornfeld Eckersley Fairweather Fennimore Grauvogel Hallenbeck
    Ingersleben Jessenius Kestrelmann Kirchweg Lindenau Lockridge Merriweather Mossberger Nettleford Oberwald
    Pemberwick Quillander Ravensdale Rosengard Saalbach Silbermann Thistlewood Thornquist Underhill Vandermeer
    Wainwright Weatherby Wolkenstein Yarborough Zimmerling
""")
TRADES: dict[str, tuple[str, str]] = {
    "composer": ("The ADJ Suite|NOUN Overture|Songs of the NOUN|The NOUN Symphony", "music"),
    "novelist": ("The ADJ NOUN|A NOUN in Winter|The NOUN and the Lamp|Letters from the NOUN", "literature"),
    "poet": ("Verses on a NOUN|The ADJ NOUN|Under the NOUN|Forty ADJ Evenings", "literature"),
    "painter": ("The ADJ NOUN|NOUN at Noon|Woman with a NOUN|Study of a NOUN", "painting"),
    "botanist": ("Flora of the ADJ NOUN|The ADJ Herbarium|On Mosses and the NOUN", "botany"),
    "explorer": ("Across the ADJ NOUN|Two Years beyond the NOUN|My ADJ Journey", "geography"),
    "chemist": ("On the ADJ Salts|A Table of ADJ Metals|The NOUN and Its Ashes", "chemistry"),
    "astronomer": ("The ADJ Comet|A Catalogue of ADJ Stars|The NOUN in the Sky", "astronomy"),
    "engineer": ("The ADJ Bridge|The NOUN Viaduct|The ADJ Lock", "engineering"),
}
"""The patterns of the works of each trade, and its field."""
ADJECTIVES = words("""
    Silent Amber Northern Forgotten Patient Hollow Scarlet Distant Gentle Broken Golden Restless Quiet Winter Painted
    Wandering Pale Second Lonely Crooked
""")
NOUNS = words("""
    Harbour Orchard Lantern Ferryman Heron Clockmaker Meadow Staircase Lighthouse Weaver Garden Bell Window Mirror
    Sparrow Compass Kettle Beacon Fountain Shepherd
""")
PARENTS = (
    "a baker", "a ferryman", "a schoolteacher", "a clockmaker", "a miller", "a railway clerk", "a pharmacist",
    "a saddler", "an innkeeper", "a gardener", "a bookbinder", "a physician",
)  # fmt: skip
ORDINALS = ("first", "second", "third", "fourth", "fifth")
FOREIGN = (
    "Portugal", "Norway", "Japan", "Chile", "Iceland", "Kenya", "Peru", "Finland", "Greece", "Nepal", "Madagascar",
    "New Zealand", "Uruguay", "Denmark", "Ecuador", "Vietnam",
)  # fmt: skip
"""Countries of the real world in which people of the articles have lived."""
ELEMENTS = ("cobalt", "zinc", "sulfur", "nickel", "silver", "iodine", "manganese", "bismuth", "tungsten", "copper")
