"""Words and patterns for names on the map.

A pattern has alternatives separated by "|". ADJ, ANIMAL, THING, TREE, SURNAME, TOWN and STREET are placeholders for
words.
"""

from __future__ import annotations

from agentgym_envs.webarena.sites.words import words

TREES = words(
    "Acacia Alder Almond Aspen Beech Birch Cherry Cypress Damson Elder Elm Hawthorn Hazel Hornbeam Larch Laurel Lime "
    "Magnolia Maple Mulberry Myrtle Oak Olive Pear Pine Plane Poplar Quince Rowan Spruce Sycamore Walnut Willow Yew"
)
PATHS = ("Walk", "Walk", "Path", "Alley", "Promenade")
WORDS = {
    "TREE": TREES,
    "SURNAME": words(
        "Adler Baxter Brandt Calloway Cardell Dorn Ekwall Fenwick Garnett Hale Harrow Imber Jarvis Keating Lomax "
        "Marlow Napier Ormond Pemberly Quill Rainford Sefton Thorne Upton Varley Whitlock Yardley Zeller"
    ),
    "ADJ": words(
        "Amber Blue Bright Copper Crooked Golden Green Hidden Hungry Iron Ivory Jolly Little Lucky Merry Old Painted "
        "Quiet Red Rusty Silver Singing Sleepy Speckled Velvet Wandering Warm White Wild Wooden"
    ),
    "ANIMAL": words(
        "Badger Bear Boar Crane Cuckoo Dolphin Falcon Finch Fox Goose Hare Hedgehog Heron Kingfisher Lamb Lynx Magpie "
        "Mole Otter Owl Peacock Pheasant Raven Robin Salmon Sparrow Stag Swan Trout Wren"
    ),
    "THING": words(
        "Anchor Anvil Barrel Basket Bell Candle Compass Crown Drum Feather Fiddle Hourglass Kettle Key Ladder Lantern "
        "Loom Mirror Needle Pitcher Plough Quill Saddle Spindle Teapot Thimble Whistle Windmill"
    ),
}
CUISINES = {
    "italian": ("Trattoria|Osteria|Ristorante|Casa", "Alba|Bruna|Celeste|Donata|Fiorella|Marisa|Rosetta|Sole|Zita"),
    "japanese": ("Akari|Hanami|Kaede|Kumo|Matsu|Mizuki|Nagi|Sakura|Tsubame|Yuki", "Kitchen|House|Table|Garden"),
    "chinese": ("Golden|Jade|Red|Silver", "Bamboo|Carp|Crane|Garden|Lotus|Mountain|Orchid|Pavilion|River"),
    "indian": ("Spice|Curry|Saffron|Tamarind|Cardamom", "Bazaar|Court|House|Leaf|Palace|Room|Route|Tree|Village"),
    "mexican": ("Cantina|Taqueria|Cocina", "Agave|Azul|Bonita|Cactus|Colibri|Luna|Maiz|Paloma|Verde"),
    "thai": ("Thai|Baan|Siam", "Basil|Blossom|Jasmine|Lemongrass|Lotus|Orchid|Smile|Tiger"),
    "greek": ("Taverna|Ouzeri", "Delfini|Elia|Kyma|Lemonia|Meltemi|Nisos|Ormos|Petra|Thalassa"),
    "french": ("Bistro|Chez|Brasserie", "Adele|Bastien|Colette|Delphine|Gaston|Hortense|Lucien|Odette|Yvette"),
    "turkish": ("Anatolian|Sultan's|Saz", "Garden|Grill|House|Kitchen|Table|Terrace|Oven"),
    "lebanese": ("Cedar|Levant|Zaatar", "Garden|House|Kitchen|Mezze|Nights|Oven|Table"),
    "korean": ("Hanok|Bibim|Kimchi", "Barbecue|Garden|House|Kitchen|Table|Village"),
    "vietnamese": ("Pho|Lotus|Mekong", "Corner|Garden|House|Kitchen|Street|Sunrise"),
    "spanish": ("Bodega|Mesón|Casa", "Alegria|Blanca|Candela|Dolores|Encina|Jimena|Pilar|Ramona"),
    "regional": ("The ANIMAL Table|The Old THING|THING and ANIMAL|The ADJ Plate|SURNAME's Kitchen|The Farmer's THING",),
    "seafood": ("The ADJ Oyster|The Salty ANIMAL|Net and Anchor|The ADJ Lobster|Captain SURNAME's|Tide and THING",),
    "steak_house": ("SURNAME's Grill|The ADJ Bull|Fire and THING|The ADJ Ember",),
    "vegan": ("The Green THING|The ADJ Radish|Happy Beet|The ADJ Carrot|Leaf and THING|Pea and THING",),
}
CHAINS = {
    "supermarket": ("Greenbasket", "Tollins", "Marlo & Finch", "Daily Larder"),
    "bank": ("Harbour Mutual", "Old Mill Bank", "First Lantern Bank", "Pellworth Savings"),
    "fuel": ("Tarnoil", "Volla", "Redpump"),
    "charging_station": ("Voltbee", "Wattwell", "Sparrow Charge"),
    "pharmacy": ("Mortar & Leaf", "Balmworth"),
    "cafe": ("Bean Parade", "Third Kettle"),
    "fast_food": ("Burly Bun", "Wok Hop", "Pronto Slice"),
    "hotel": ("Lodgeway", "Tern Inn"),
    "convenience": ("Cornerly", "Quicknip"),
    "clothes": ("Threadlane", "Hem & Hollow"),
    "cinema": ("Lumen Cinema", "Reelhouse"),
    "bicycle_rental": ("Pedalfox", "Spokely"),
    "parking": ("Parkwell", "Town Parking"),
    "services": ("Halfway House", "Roadside Rest"),
}
CHAIN_FOOD = {"Burly Bun": "burger", "Wok Hop": "noodles", "Pronto Slice": "pizza"}
NAMES = {
    "cafe": (
        "Café TREE|The ADJ Cup|The ADJ Teapot|Café SURNAME|The Reading Room|Crumb and THING|"
        "SURNAME's Tea Room|ANIMAL & Bean"
    ),
    "pub": "The ADJ ANIMAL|The ANIMAL and THING|The THING and THING|The ADJ Barrel|The SURNAME Arms|The TOWN Tap",
    "fast_food": "STREET Kebab|SURNAME's Chip Shop|The ADJ Wrap|STREET Noodles|Pizza SURNAME|TOWN Fish Bar",
    "bakery": "SURNAME's Bakery|The ADJ Loaf|Crust and Crumb|STREET Bakery|The ADJ Oven|Bakery TREE|ANIMAL and Rye",
    "hotel": (
        "Hotel TREE|The SURNAME|The ADJ ANIMAL Hotel|Grand Hotel TOWN|Hotel SURNAME|Park Hotel TOWN|The THING Hotel"
    ),
    "hostel": "ADJ ANIMAL Hostel|TOWN Youth Hostel|The THING Hostel|Backpackers TREE",
    "guest_house": "SURNAME Guest House|TREE Cottage|Villa SURNAME|TREE House|The ADJ THING Guest House",
    "campsite": "TREE Campsite|Camping ADJ ANIMAL|SURNAME's Meadow Camping|TREE Grove Campsite",
    "gallery": "Gallery SURNAME|The ADJ Frame|STREET Gallery|SURNAME & SURNAME Fine Art|Gallery TREE",
    "theatre": "TOWN Playhouse|The SURNAME Theatre|Theatre Royal TOWN|The THING Theatre|STREET Stage",
    "cinema": "The ADJ Screen|Odette Pictures|STREET Picture House|The THING Cinema",
    "library": "TOWN Public Library|STREET Library|SURNAME Memorial Library|TREE Branch Library",
    "castle": "SURNAME Castle|ANIMAL Rock Castle|TREE Keep|Castle SURNAME|ADJ Tower",
    "viewpoint": "ANIMAL Lookout|SURNAME's View|TREE Terrace|ADJ Cliff Lookout",
    "peak": "ANIMAL Hill|Mount SURNAME|ADJ Tor|TREE Fell|THING Top|ADJ ANIMAL Peak",
    "pharmacy": "STREET Pharmacy|SURNAME Pharmacy|ANIMAL Pharmacy|TREE Pharmacy|TOWN Central Pharmacy",
    "hospital": "TOWN General Hospital|SURNAME Hospital|TREE Hill Hospital|TOWN Children's Hospital",
    "doctors": "STREET Surgery|Dr SURNAME|TREE Health Centre|Drs SURNAME and SURNAME|TREE Medical Practice",
    "dentist": "STREET Dental|SURNAME Dental Practice|Dr SURNAME, Dentist|TREE Dental Care|The ADJ Smile",
    "veterinary": "SURNAME Animal Clinic|STREET Vets|The ADJ Paw|ANIMAL and Hound Vets",
    "school": (
        "TREE Primary School|STREET School|SURNAME School|TOWN Grammar School|TREE Secondary School|SURNAME Academy"
    ),
    "university": "University of TOWN|TOWN Institute of Technology|SURNAME College|TOWN School of Music",
    "town_hall": "TOWN Town Hall",
    "post_office": "TOWN Post Office|STREET Post Office",
    "police": "TOWN Police Station|STREET Police Station",
    "fire_station": "TOWN Fire Station|STREET Fire Station",
    "office": (
        "SURNAME & SURNAME Architects|ADJ ANIMAL Software|SURNAME Logistics|THING Insurance|TREE Consulting|"
        "SURNAME Law|ADJ THING Design|TOWN Water Works|ANIMAL Press"
    ),
    "supermarket": "TREE Wholefoods|SURNAME's Market",
    "convenience": "STREET Stores|SURNAME's Corner|TREE Mini Market|Night ANIMAL",
    "bookshop": "The ADJ Page|SURNAME's Books|ANIMAL & Quill|STREET Books|The ADJ Bookmark|TREE Secondhand Books",
    "clothes": "The ADJ Needle|SURNAME Outfitters|ANIMAL and Thread|TREE Vintage",
    "hardware": "SURNAME & Sons Hardware|THING and Nail|STREET Hardware|The ADJ Hammer",
    "florist": "TREE Flowers|SURNAME's Flowers|The ADJ Petal|STREET Florist",
    "bicycle_shop": "SURNAME Cycles|The ADJ Spoke|ANIMAL Bikes|STREET Cycles",
    "hairdresser": "The ADJ Comb|SURNAME's Barbers|Salon TREE|Hair by SURNAME|ANIMAL and Scissors|STREET Hair",
    "marketplace": "TOWN Market Hall|STREET Farmers' Market",
    "swimming_pool": "TOWN Baths|TREE Pool|STREET Swimming Pool",
    "sports_centre": "TOWN Sports Centre|SURNAME Arena|TREE Leisure Centre|STREET Gym",
    "station": "TOWN Central Station|TOWN Station|TOWN STREET Station|TOWN North Station",
    "airport": "TOWN Airport|SURNAME Airport",
    "parking": "STREET Car Park|TREE Court Car Park",
}
FAST_FOOD = {
    "Kebab": "kebab",
    "Chip": "fish_and_chips",
    "Wrap": "sandwich",
    "Noodles": "noodles",
    "Pizza": "pizza",
    "Fish": "fish_and_chips",
}
"""Cuisines of fast food places, by a word of their names."""
MUSEUMS = (
    ("Museum of Clocks", "two hundred clocks and watches, most of them ticking"),
    ("Maritime Museum", "ships' models, charts and a whole fishing smack"),
    ("Museum of Glass", "glass from four centuries, and a furnace where it is blown"),
    ("Railway Museum", "nine steam engines in the old roundhouse"),
    ("Toy Museum", "dolls, tin soldiers and a model railway that runs on the hour"),
    ("Museum of Natural History", "minerals, birds and the skeleton of a whale"),
    ("Museum of Modern Art", "painting and sculpture since 1900"),
    ("Textile Museum", "looms, costumes and the sample books of the mills"),
    ("Science Museum", "experiments for visitors of every age"),
    ("Museum of Music", "instruments, many of which may be played"),
    ("Folk Museum", "farmhouses with their furniture, gardens and animals"),
    ("Bread Museum", "ovens, mills and a bakery that sells what it shows"),
    ("Museum of Printing", "presses and type, with workshops at weekends"),
    ("Photography Museum", "cameras and prints, and a darkroom"),
    ("Mining Museum", "a gallery forty metres under the ground"),
    ("Puppet Museum", "puppets from thirty countries, and a stage"),
    ("Postal Museum", "mail coaches, uniforms and stamps"),
    ("Salt Museum", "how salt was boiled, carried and taxed"),
    ("Museum of Medicine", "an old operating theatre and a pharmacy"),
    ("Archaeological Museum", "finds from the town's first two thousand years"),
    ("Fire Brigade Museum", "engines and pumps from the days of the bucket chain"),
    ("Lighthouse Museum", "lenses, lamps and the keepers' letters"),
    ("Museum of Ceramics", "pots, tiles and a kiln that can be walked through"),
    ("Aviation Museum", "gliders, biplanes and a simulator"),
)
