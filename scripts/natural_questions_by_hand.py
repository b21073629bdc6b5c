"""Natural questions that were written by hand: the question, the title of its subject, and words of the answer."""

BY_HAND = """
Which emirate was the last to join the UAE, and when? | United Arab Emirates | joined in 1972
What are the colours of the Emirati flag and national emblem bird? | United Arab Emirates | golden falcon
Why is the location of the UAE strategically important? | United Arab Emirates | Strait of Hormuz
main container ports of the Emirates | United Arab Emirates | Khor Fakkan
What kind of government does the UAE have? | United Arab Emirates | federation with specified powers
Which was the first nation to adopt Christianity officially? | Armenia | first nation to formally adopt Christianity
How many provinces is Armenia divided into? | Armenia | 11 provinces
What share of Armenians can read and write? | Armenia | 99.7
Which river is at the lowest elevation in Armenia? | Armenia | Debed River
What is the biggest lake in the Lesser Caucasus? | Armenia | largest lake in this mountain range
What do the stripes on the Armenian flag stand for? | Armenia | bands of red (top), blue, and orange
When did the Angolan civil war end? | Angola | 27-year civil war in 2002
Who led UNITA in Angola? | Angola | Jonas SAVIMBI
Which part of Angola is cut off from the rest of it? | Angola | Cabinda is an exclave
What animal is the national symbol of Angola? | Angola | giant black sable antelope
Where are Angola's seaports? | Angola | Cabinda, Lobito, Luanda, Namibe
Which minerals are mined in Angola? | Angola | diamonds, iron ore, phosphates
When was Angola's current constitution adopted? | Angola | 5 February 2010
What empire was Austria once the centre of? | Austria | Austro-Hungarian Empire
When did Nazi Germany annex Austria? | Austria | annexation by Nazi Germany in 1938
How many states make up Austria, and what are they called? | Austria | Bundeslaender
What's the lowest place in Austria? | Austria | Neusiedler See
What natural dangers are there in the Austrian mountains? | Austria | landslides; avalanches
Name of the upper house of the Austrian parliament | Austria | Bundesrat
Which duke and his tunic does the Austrian flag go back to? | Austria | Duke Leopold V
Who has ruled Bahrain since the 18th century? | Bahrain | Al-Khalifa
What is Bahrain's economy based on instead of its shrinking oil reserves? | Bahrain | petroleum processing
Bahrain system of government | Bahrain | constitutional monarchy
What legal system does Bahrain use? | Bahrain | mixed legal system of Islamic law
Which harbours does Bahrain have? | Bahrain | Sitrah
Who lived in southern Chile before the Spanish came? | Chile | Mapuche
Which war did Chile win against Peru and Bolivia? | Chile | War of the Pacific
How many regions are there in Chile? | Chile | 15 regions
Does Chile have many active volcanoes? | Chile | three-dozen active volcanoes
How many senators sit in the Chilean congress? | Chile | 38 seats
What environmental problems does Chile suffer from? | Chile | widespread deforestation and mining
What is the weather like in the north of Chile? | Chile | desert in north
Which country is Europe's largest economy? | Germany | Europe's largest economy
What bird is the German national symbol? | Germany | golden eagle
River ports in Germany | Germany | Bremerhaven (Geeste)
Where do most refugees in Germany come from? | Germany | 41,167
When did the German Basic Law come into force? | Germany | 24 May 1949
What goods does German industry produce? | Germany | machine tools
When did the first unified kingdom in Egypt arise? | Egypt | circa 3200 B.C.
What is the hot wind in Egypt in spring called? | Egypt | khamsin
Which eagle is on Egypt's flag? | Egypt | Eagle of Saladin
Lowest point below sea level in Egypt | Egypt | Qattara Depression
What percentage of Egyptian women are literate? | Egypt | 65.4
How many governorates does Egypt have? | Egypt | 27 governorates
What is happening to farmland in Egypt? | Egypt | agricultural land being lost to urbanization
What's the name of the parliament in Cairo? | Egypt | House of Representatives
When did Honduras get an elected civilian government again? | Honduras | civilian government came to power in 1982
national bird of Honduras | Honduras | scarlet macaw
Which coast of Honduras is nearly empty of people? | Honduras | Mosquito Coast
Ports on the coasts of Honduras | Honduras | La Ceiba, Puerto Cortes
What does Honduras manufacture? | Honduras | woven and knit apparel
What was Iran called before 1935? | Iran | Known as Persia until 1935
Who led the Islamic revolution in Iran? | Iran | Ayatollah Ruhollah KHOMEINI
Which monarch was overthrown in Iran in 1979? | Iran | Mohammad Reza PAHLAVI
Which territory did Mauritania occupy in 1976? | Mauritania | former Spanish Sahara
Who took power in Mauritania by the coup of 1984? | Mauritania | TAYA seized power
Is Mauritania in the Maghreb or the Sahel? | Mauritania | both a part of North Africa's Maghreb
What are the two harbours of Mauritania? | Mauritania | Nouadhibou, Nouakchott
How many refugees from Mali live in Mauritania? | Mauritania | 49,911
Which family rules Qatar? | Qatar | Al Thani
What did Qatar live on before oil and gas? | Qatar | noted mainly for pearling
What does the maroon of Qatar's flag mean? | Qatar | blood shed in Qatari wars
How many municipalities are in Qatar? | Qatar | 7 municipalities
Why does Qatar need desalination plants? | Qatar | desalination facilities
What's the climate in Qatar like? | Qatar | very hot, humid summers
How long has Sweden stayed out of wars? | Sweden | not participated in any war for two centuries
What emblem stands for Sweden? | Sweden | three crowns, lion
Major Swedish ports | Sweden | Brofjorden, Goteborg
Where do refugees in Sweden come from? | Sweden | 34,285
Sweden strategic straits | Sweden | Danish Straits
Where was Napoleon exiled? | Saint Helena | Napoleon
Which volcano is active on Tristan da Cunha's islands? | Saint Helena | volcanoes of Tristan da Cunha
Who discovered the island of St Helena? | Saint Helena | discovered by the Portuguese in 1502
How many unique plants grow on St. Helena? | Saint Helena | 40 species of plants unknown elsewhere
Which two colonies were merged into Somalia? | Somalia | Italian Somaliland
Who led the 1969 coup in Mogadishu? | Somalia | SIAD Barre
Somali seaports | Somalia | Berbera, Kismaayo
Which animal is Somalia's symbol? | Somalia | leopard
How many people are displaced inside Somalia? | Somalia | 1.106 million
When did Suriname become a Dutch colony? | Suriname | Dutch colony in 1667
From where were workers brought to Suriname after slavery ended? | Suriname | India and Java
How many districts does Suriname have? | Suriname | 10 districts
What pollutes the rivers of Suriname? | Suriname | small-scale mining activities
What does the Surinamese flag look like? | Suriname | five-pointed star
What is special about Pitch Lake? | Trinidad and Tobago | natural reservoir of asphalt
Which birds are the symbols of Trinidad? | Trinidad and Tobago | scarlet ibis
LNG and ammonia producer in the Caribbean: which industries does Trinidad have? | Trinidad and Tobago | methanol
How many new states joined the original 13 of the USA? | United States | 37 new states
lowest place in the US | United States | Death Valley
How many members does the American Senate have? | United States | 100 seats
What do the stripes on the American flag look like? | United States | 13 equal horizontal stripes
Which US states have tropical weather? | United States | tropical in Hawaii and Florida
Who occupied Western Samoa at the start of WWI? | Samoa | New Zealand occupied
Which stars are on Samoa's symbol? | Samoa | Southern Cross
Does Samoa have an army? | Samoa | no regular military forces
Who found out about hydrogen as an element? | Hydrogen | Henry Cavendish
What is most hydrogen used for? | Hydrogen | production of ammonia
How much of the air is neon? | Neon | 0.0018%
Why is K the symbol of potassium? | Potassium | kalium
What gives rubies and emeralds their colour? | Chromium | rubies and emeralds
Why does steel with chromium not rust, i.e. what is chromium used for? | Chromium | stainless steel
Which metal carries oxygen in our blood? | Iron | hemoglobin
Which island is copper named after? | Copper | island of Cyprus
What was niobium called at first? | Niobium | Columbium
Where does the name technetium come from? | Technetium | artificial
Which element was named after the Latin name of Copenhagen? | Hafnium | Hafnia
Which element is hard to get at according to its Greek name? | Dysprosium | hard to get at
Where do nuclear reactors use hafnium? | Hafnium | reactor control rods
Who first made californium? | Californium | Glenn T. Seaborg
At which lab was hassium made? | Hassium | Darmstadt
Where was element 115 found first? | Moscovium | Joint Institute for Nuclear Research
"""
"""One question a line. The subject is the title of an element, or of a country, whose pages all begin with its name."""
