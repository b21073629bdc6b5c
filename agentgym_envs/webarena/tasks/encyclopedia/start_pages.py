"""Tasks that start on an article of the encyclopedia."""

from __future__ import annotations

from agentgym_envs.webarena.sites.encyclopedia.articles import article_path
from agentgym_envs.webarena.sites.encyclopedia.library import library
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.encyclopedia import acting, mapping
from agentgym_envs.webarena.tasks.encyclopedia.steps import title_here
from agentgym_envs.webarena.tasks.shopping.steps import PRICE_DOWN
from agentgym_envs.webarena.tasks.steps import do, given
from agentgym_envs.webarena.tasks.template import starting_on

_THIS = given(title_here)
"""An argument of a step: the title of the article on the page."""


def _article(title: str) -> str:
    return ORIGINS["encyclopedia"] + article_path(title)


def _element_page(world: World, element: str) -> str:
    found = library(world).find(element)
    return _article(found.title if found else element)


def _person_page(person: str) -> str:
    return _article(person)


def _first_page(first: str) -> str:
    return _article(first)


def _architect_page(architect: str) -> str:
    return _article(architect)


birthplace_on_map = starting_on(
    _person_page,
    mapping.birthplace_on_map,
    "Show me the birthplace of this person on the map: open the map's page of that town.",
    "In which town was the person of this article born? Open that town on the map.",
    "Look up where the person that I am reading about was born and bring me to the page of that town on the map.",
    solution=[do(mapping.open_town, _THIS, "Born")],
    mistake=[do(mapping.open_town, _THIS, "Died")],
    difficulty="easy",
)
birthplace_postcode = starting_on(
    _person_page,
    mapping.birthplace_postcode,
    "What is the postcode of the town in which this person was born?",
    "Which postcode does the map give for the place of birth of the person of this article?",
    "Tell me the postcode of the birthplace of whom I am reading about.",
    solution=lambda page: mapping.read_postcode(page, title_here(page), "Born"),
    mistake=lambda page: mapping.read_postcode(page, title_here(page), "Died"),
    difficulty="easy",
)
birthplaces_apart = starting_on(
    _first_page,
    mapping.birthplaces_apart,
    "How many kilometres is it by car from the birthplace of this person to the birthplace of {second}?",
    "The person of this article and {second} were born in different towns. How many kilometres is it by car from the "
    "town of the former to that of the latter?",
    "Find out where the person that I am reading about and {second} were born. What distance in kilometres does the "
    "map give from the one town to the other, by car?",
    solution=lambda page, second: mapping.measure(page, title_here(page), second),
    mistake=lambda page, second: mapping.measure(page, title_here(page), second, "Died"),
)
museum_to_list = starting_on(
    _architect_page,
    mapping.museum_to_list,
    'Put the museum that this architect designed on my list "{list}" of the map.',
    'Which museum did the architect of this article design? Save it to my list "{list}" on the map, without a note.',
    'My list "{list}" on the map should also have the museum by the architect that I am reading about.',
    solution=lambda page, list: mapping.save_museum(page, title_here(page), list),
)
museum_year_note = starting_on(
    _architect_page,
    mapping.museum_year_note,
    "The map should say when the museum by this architect opened. Report a problem at that museum, with exactly the "
    'words "Opened in" and the year that the encyclopedia gives.',
    "Find the museum that the architect of this article designed and the year in which it opened. Add a note about the "
    'museum to the map that says only "Opened in YEAR", with that year.',
    'Leave a note on the map at the museum designed by the architect that I am reading about: "Opened in", and then '
    "the year in which it opened, and nothing else.",
    solution=lambda page: mapping.report_year(page, title_here(page)),
    difficulty="medium",
)
museum_phone_post = starting_on(
    _architect_page,
    mapping.museum_phone_post,
    "Which museum did this architect design? Write a post on the forum board {board}: its title is the name of the "
    "museum, its text only the phone number that the map gives for it.",
    "Post on the board {board} of the forum. Title: the museum by the architect of this article. Text: the telephone "
    "number of that museum on the map, and nothing more.",
    "People on {board} in the forum ask how to reach the museum by the architect that I am reading about. Post its "
    "phone number from the map, alone, under the name of the museum as the title.",
    solution=lambda page, board: mapping.post_phone(page, title_here(page), board),
)
founder_cheapest = starting_on(
    _person_page,
    acting.founder_cheapest,
    "This person founded a company whose goods the shop sells. Put the cheapest product of that brand into my cart.",
    "I want the cheapest thing that the shop has of the brand founded by the person of this article. Add it to my "
    "shopping cart.",
    "Find out which company the person that I am reading about founded, and add the shop's cheapest product of that "
    "brand to the cart.",
    solution=lambda page: acting.add_cheapest(page, title_here(page)),
    mistake=lambda page: acting.add_cheapest(page, title_here(page), PRICE_DOWN),
)
fact_in_comment = starting_on(
    lambda country: _article(country),
    acting.fact_in_comment,
    'Comment on the forum post "{title}" with the {fact} of this country as the encyclopedia\'s table of facts writes '
    "it, and nothing else.",
    'Below "{title}" in the forum, somebody wants to know the {fact} of the country of this article. Write only that, '
    "as it is in the table of the article.",
    "Look up the {fact} of the country that I am reading about. Copy it from the table of facts into a comment on the "
    'post "{title}" in the forum, without any other word.',
    solution=lambda page, fact, title: acting.write_fact(page, title_here(page), fact, title),
    mistake=lambda page, title: acting.write_fact(page, title_here(page), "Area", title),
)
element_issue = starting_on(
    _element_page,
    acting.element_issue,
    'Open an issue titled "{title}" in {project}. Its description is only the CAS number of this element, from the '
    "encyclopedia.",
    'The project {project} needs an issue called "{title}". Look up the CAS number of the element of this article and '
    "write just that into the description.",
    'File the issue "{title}" in {project}, with nothing but the CAS number of the element that I am reading about as '
    "the description.",
    solution=lambda page, project, title: acting.open_element_issue(page, title_here(page), project, title),
)
