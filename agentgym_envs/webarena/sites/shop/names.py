"""Invented names of brands and models."""

from __future__ import annotations

from agentgym_envs.webarena.sites.words import words

BRANDS = words("""
    Abrello Adlune Alberwick Ambrind Andrell Arkwell Arvanto Aubermann Avelund Balderby Bastrow Belmoor Birkdun
    Bravente Brennick Brissom Calderholm Cambrisk Carrowen Cintrell Colbrand Corvessa Damaro Dellwyck Drumlow
    Eastreve Elmstow Emberlin Evandra Fallowell Farrimond Ferrantis Fjellmo Galdray Glenvar Gorsefield Halbrook
    Hartvik Haverlin Hollisk Ibberton Ilmara Inglebrook Jarnvall Jessamond Kaldera Karrenby Kestelow Kilmoor
    Koppervik Lambrith Larkspin Lindqvarn Lorimond Lumanza Marrowick Mellstrom Merrivane Mondrake Nackrow Nerivo
    Nordhavel Novarelle Oakhelm Oddvarn Orlessa Ostrevik Pallindor Pemberlow Perrivale Quellmore Quintave Radlin
    Ravensholt Rindall Saltren Sandrivo Selkarn Skarvholm Solvanne Stellmark Tamberlin Tarrowby Thistlewen Tolvane
    Trevanto Valdrek Vellamore Verrick Vintervale Wendermoor Westrand Willowmark Wrenfold Yarrowden Ystrell
    Zandervik Zellmoor
""")
MODELS = words("""
    Anchor Arrow Aspen Aurora Bay Beacon Birch Bloom Bolt Breeze Brisk Canyon Cedar Chalk Cinder Cliff Cloud Clover
    Coast Comet Cove Crest Dawn Delta Drift Dune Dusk Echo Ember Fable Falcon Fern Finch Fjord Flint Flow Forge
    Frost Gale Glade Glow Grove Gull Haven Hazel Heath Heron Hollow Ivory Jetty Kite Lagoon Lark Ledge Lichen Loft
    Loom Lune Maple Meadow Mesa Mist Moor Nest Nimbus Nook North Oasis Opal Orbit Otter Oxbow Pebble Pine Pivot
    Plume Poppy Prairie Quarry Quill Rapid Raven Reed Ridge Ripple Robin Rook Rowan Rune Sable Sail Shale Shore
    Sierra Silva Snow Solace Sparrow Spruce Storm Summit Swift Tarn Tide Timber Trail Tundra Umber Vale Vista Wave
    Willow Wren Yarrow Zenith
""")
MORE_MODELS = words("""
    Acacia Acorn Agate Alcove Alder Almond Alpine Amber Anvil Apex Apollo Arbor Arcade Archer Argo Ash Aster Atlas
    Azure Badger Balsam Banner Barley Basalt Basil Beaver Beech Bison Blossom Bluff Boulder Bramble Brook Buckle
    Burrow Cactus Cairn Camber Camellia Canopy Cascade Castle Cavern Chestnut Chisel Citrine Clarion Clay Cobalt
    Compass Condor Copper Coral Cotton Cricket Crocus Crystal Current Cypress Dahlia Daisy Dapple Deer Denim Dipper
    Dolphin Dove Eagle Eddy Elder Elk Elm Ermine Estuary Feather Fennel Field Finn Firth Flame Flax Fleet Forest
    Fox Galaxy Garnet Geyser Ginger Glacier Glimmer Gorge Granite Grotto Gust Harbour Harvest Hawk Hearth Heather
    Helm Hemlock Hickory Hill Hopper Horizon Hornbeam Ibis Indigo Iris Island Ivy Jade Jasper Jay Juniper Kestrel
    Keel Kelp Knoll Lantern Larch Laurel Lava Lavender Lemon Lily Linden Linnet Lotus Lupin Lynx Magnet Magnolia
    Magpie Mallow Mango Marble Marina Marlin Marsh Marten Merlin Meteor Mica Midnight Mineral Mint Mistral Monsoon
    Moss Mulberry Myrtle Nautilus Nebula Nettle Newt Nightjar Noon Nova Nutmeg Oak Ocelot Olive Onyx Orchard
    Orchid Osprey Outpost Oyster Palm Panther Parsley Passage Pearl Pelican Peony Pepper Petal Petrel Piper Plover
    Polar Pond Poplar Prism Puffin Quartz Quince Rain Rampart Reef Rill River Rocket Rose Ruby Rush Saffron Sage
    Salmon Sand Satin Scarlet Seal Sepia Shadow Shell Silk Slate Solar Sorrel Spark Spindle Spring Stag Star Stone
    Stork Stream Sunrise Swallow Swan Sycamore Teal Tempest Terrace Thistle Thorn Thunder Tiger Topaz Torrent Tower
    Tulip Turret Twig Valley Velvet Verbena Violet Vireo Wharf Wheat Whirl Wolf Woodland Zephyr Zircon
""")
"""More models, for large catalogues."""
ADJECTIVES = {
    "Kitchen": ("dependable", "handsome", "well-made", "practical", "compact"),
    "Home Decor": ("warm", "quiet", "elegant", "hand-finished", "timeless"),
    "Furniture": ("solid", "comfortable", "space-saving", "honest", "elegant"),
    "Garden & Tools": ("sturdy", "weatherproof", "handy", "tried and tested", "reliable"),
    "Clothing": ("well-cut", "comfortable", "everyday", "classic", "carefully sewn"),
    "Shoes & Bags": ("hard-wearing", "comfortable", "light", "classic", "versatile"),
    "Sports & Outdoors": ("light", "robust", "dependable", "well-balanced", "weatherproof"),
    "Health & Beauty": ("gentle", "effective", "soothing", "pure", "trusted"),
    "Electronics": ("smart", "powerful", "compact", "long-lasting", "easy to use"),
    "Office": ("precise", "thoughtful", "quiet", "tidy", "well-made"),
    "Grocery": ("delicious", "aromatic", "honest", "small-batch", "full-flavoured"),
    "Toys & Games": ("lively", "clever", "charming", "lovingly made", "entertaining"),
}
"""Adjectives for product descriptions, by department."""
CARRIERS = ("Meridian Parcel", "Greenline Express", "Bluebird Courier", "Lighthouse Post")
