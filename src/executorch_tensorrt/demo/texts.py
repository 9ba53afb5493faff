"""What the demo searches: passages long enough for the document profile, and questions short enough for the other."""

from __future__ import annotations

from typing import NamedTuple


class Passage(NamedTuple):
    title: str
    text: str


PASSAGES = (
    Passage(
        "Sourdough",
        "A sourdough starter is flour and water left to ferment until wild yeast and bacteria settle in it. Feed it "
        "once a day, keep it warm, and after about a week it will double between meals and can raise a loaf without "
        "any yeast from a packet.",
    ),
    Passage(
        "Bicycle chain",
        "A bicycle chain wears by growing longer. When a gauge shows that it has stretched by more than half a "
        "percent, replace it, since a long chain grinds the teeth of the cassette down and then both parts have to "
        "be bought again.",
    ),
    Passage(
        "Tides",
        "The sea rises and falls twice a day because the moon pulls a little harder on the water that is nearest to "
        "it. When sun and moon stand in one line, at new and full moon, their pulls add up and the range between "
        "high and low water is largest.",
    ),
    Passage(
        "Bee colony",
        "In winter a bee colony neither sleeps nor flies out. The workers form a tight ball around the queen, "
        "shiver with their flight muscles to make heat, and take turns at the cold outer shell while they eat "
        "through the honey they stored in summer.",
    ),
    Passage(
        "Compound interest",
        "Money that earns interest on its interest grows faster every year. At five percent a sum doubles in a "
        "little over fourteen years, so somebody who starts saving at twenty can end with more than a person who "
        "puts aside twice as much from forty on.",
    ),
    Passage(
        "Glaciers",
        "A glacier is snow that never had time to melt. Year upon year the layers press the lowest ones into blue "
        "ice, and under its own weight the whole mass creeps downhill, scraping the rock below and carrying "
        "boulders many kilometres into the valley.",
    ),
    Passage(
        "Vaccination",
        "A vaccine shows the immune system a harmless piece of a germ. White blood cells that recognise it "
        "multiply, some of them stay in the body for years, and when the real infection arrives the answer comes in "
        "hours and not in days.",
    ),
    Passage(
        "Violin",
        "The sound of a violin is born in the bow hair, which sticks to the string, drags it aside and lets it "
        "slip, several hundred times a second. The bridge passes that shaking on to the thin wooden belly, and the "
        "belly moves the air of the room.",
    ),
    Passage(
        "Coffee",
        "Coffee tastes sour when water has passed through it too quickly and bitter when it took too long. Grind "
        "finer to slow the flow, coarser to speed it up, and change only one thing at a time, or you will never "
        "know what made the cup better.",
    ),
    Passage(
        "Lighthouse",
        "Before radio, a captain told one lighthouse from another by its rhythm. Every tower along a coast was "
        "given a pattern of flashes and pauses of its own, printed in the pilot book, so that counting seconds was "
        "enough to know which headland lay ahead.",
    ),
    Passage(
        "Photosynthesis",
        "Leaves are green because their pigment swallows red and blue light and has little use for the rest. With "
        "that energy the plant splits water, lets the oxygen go, and builds sugar from the carbon dioxide that "
        "enters through pores on the underside.",
    ),
    Passage(
        "Earthquake",
        "The plates of the earth's crust move about as fast as fingernails grow, but their edges are rough and "
        "lock. Strain gathers for decades until the rock breaks along the fault, and within seconds the stored "
        "energy runs out through the ground as waves.",
    ),
    Passage(
        "Chess opening",
        "In the first moves of a chess game, bring knights and bishops out towards the middle of the board, castle "
        "early to hide the king, and do not move one piece twice without need. The queen had better wait, for she "
        "is easily chased around.",
    ),
    Passage(
        "Password",
        "A long sentence of unrelated words is harder to guess than a short jumble of symbols, and easier to "
        "remember. Use another one for every account, let a password manager keep them, and switch on a second "
        "factor wherever the site offers it.",
    ),
    Passage(
        "Migration of swallows",
        "Swallows that nest under European roofs spend the winter south of the Sahara. They find the way by the "
        "sun, the stars and the field of the earth, fly low across the desert for days with hardly a meal, and come "
        "back to the same barn in April.",
    ),
    Passage(
        "Concrete",
        "Concrete does not dry, it hardens by a reaction between cement and water that goes on for years. Kept "
        "moist during the first week it becomes much stronger, which is why fresh bridges are covered with wet "
        "cloth or plastic sheets in hot weather.",
    ),
    Passage(
        "Refrigerator",
        "A refrigerator makes no cold, it carries heat outside. A liquid evaporates in the pipes within and takes "
        "warmth from the food, a compressor squeezes the vapour until it is hot, and at the back it gives that "
        "warmth to the kitchen and turns liquid again.",
    ),
    Passage(
        "Silk",
        "For many centuries only China knew how silk was made. The caterpillar of a moth spins a single thread of "
        "more than half a kilometre around itself, and to wind it off in one piece the cocoon is soaked in hot "
        "water before the moth can break out.",
    ),
    Passage(
        "Running shoes",
        "Runners who get injured have often done too much too soon. Add no more than a tenth to the weekly "
        "distance, put easy days between hard ones, and worry less about the brand of shoe than about whether it "
        "feels comfortable on the first evening.",
    ),
    Passage(
        "Printing press",
        "Gutenberg's invention was less the press than the type. He cast single letters from an alloy that cooled "
        "quickly and sharply, so that a page could be set, printed hundreds of times, taken apart and set again, "
        "and books became cheap within one lifetime.",
    ),
    Passage(
        "Black holes",
        "When a very heavy star has burned its fuel, nothing holds its core up any longer and it collapses. Around "
        "what is left there is a boundary from which not even light returns, and we see such an object only by what "
        "it does to the gas and the stars nearby.",
    ),
    Passage(
        "Tomatoes",
        "Tomato plants split their fruit when a dry week is followed by a flood. Water them slowly and regularly at "
        "the root, cover the soil with straw so that it stays evenly damp, and pinch out the side shoots to let "
        "light and air get to the leaves.",
    ),
    Passage(
        "Sleep",
        "A night's sleep runs through four or five rounds of about ninety minutes. Deep sleep fills the early ones "
        "and repairs the body, while dreams crowd the later ones and sort the memories of the day, so a short night "
        "costs mostly dreaming.",
    ),
    Passage(
        "Batteries",
        "A lithium battery ages fastest when it is hot and full. For a telephone or a laptop it is kinder to stay "
        "between a fifth and four fifths of the charge, to unplug it overnight, and never to leave it on the "
        "dashboard of a parked car.",
    ),
    Passage(
        "Roman roads",
        "Roman engineers laid their roads straight and high. Over a bed of large stones came gravel and then fitted "
        "slabs, curved so that rain ran off to ditches at both sides, and a legion could march thirty kilometres a "
        "day on them in any season.",
    ),
    Passage(
        "Language learning",
        "Words of a foreign language stay in memory when they are met again just before they would be forgotten. "
        "Cards reviewed after a day, then three days, then a week take a few minutes, and reading easy stories does "
        "the rest of the work.",
    ),
    Passage(
        "Elections",
        "Where seats are shared out in proportion to votes, small parties get into parliament and governments are "
        "mostly coalitions. Where each district sends only its winner, two large parties tend to remain, and a "
        "majority of seats may rest on a minority of votes.",
    ),
    Passage(
        "Octopus",
        "Most of an octopus's nerve cells sit in its arms. Each arm tastes what it touches and can decide by itself "
        "how to reach and grip, while the brain merely sets the goal, and an arm cut off in a fight goes on "
        "grasping for a while.",
    ),
    Passage(
        "Wind turbines",
        "The power in the wind grows with the cube of its speed, so a site that is a quarter windier yields about "
        "twice as much electricity. That is why turbines stand on ridges and at sea, and why their towers became as "
        "tall as cathedrals.",
    ),
    Passage(
        "Cheese",
        "Rennet from a calf's stomach, or from a mould, makes milk set into a soft curd. How small it is cut, how "
        "warm it is stirred and how long the wheel lies in the cellar decides whether it ends as a mild fresh "
        "cheese or as something to be grated.",
    ),
)

QUERIES = (
    "How do I bake bread without buying yeast?",
    "Why is the ocean higher at some hours of the day?",
    "what keeps honey bees alive when it is freezing",
    "my phone's battery does not last any more, what should I avoid?",
    "How can I learn vocabulary and not forget it?",
    "Where do birds go when summer ends?",
    "stars that swallow light",
    "How does a fridge work?",
)
