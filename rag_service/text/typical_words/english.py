"""Typical words of English, folded."""

from __future__ import annotations

ENGLISH = frozenset(
    """
    ability abroad absence accelerate access accident accountant accounting accuracy achieve across action active
    activity actor actual addition additional administration administrative adopt adult advantage advice affect afford
    agency agenda agent agreement agriculture aim air airline airport album allow allowance allowed alternative
    ambition amendment amount amounts analysis analyst ancient animal anniversary annual annually answer apparent
    appear applicable application applied apply appointment apprentice approach approval approve approved architect
    architecture area argument army arrangement arrest arrival article artist asking aspect asset assets assistance
    association atmosphere attack attendance attention attorney attract audience author authority automatic automobile
    available avenue average award awards aware background backing backup backups bacteria balance bank banking
    bankruptcy base basic bathroom battery battle beach beauty become bed begin behind believe belong benefits best
    between beyond bible bicycle bigger bike bill billing biology birth birthday blood blue board boat body bonus book
    booking border born bottle bought boundary bracelet branch brand break breakfast breaks bridge brilliant bring
    british broken brother budget building built bureau burn business buy buyer cabinet cable call called camera
    campaign cancel cancelled cancer candidate capable capacity capital carbon card cards career careful carry cash
    cause cell central centre century certain certificate chair challenge champion chance change character charge
    charged cheap check checking checks chemical chief child childcare choice choose church circle citizen city civil
    claim claims class clean cleaning clerk client climate clinic clock close closed closing clothes coach coast code
    coffee cold collect collection college colony colour combination comfort commander commercial commission committee
    common communication communications community company comparison competition complaint complete complex compliance
    composition computer computing concept concern concert conclude condition conditions conduct conference
    confidential conflict congress connect consider consist constant construction consultation consumer contact
    contain contemporary content context continue contractor contrast contribute contribution control convention
    conversation convert cooperation copy corporate correct correction correspondence cost costs council counter
    country county course court cover coverage create crew crime crisis critical crowd crown cultural culture currency
    current customer customers cut cycle cycling daily damage damaged danger data date daughter deadline deadlines
    deaf deal dealer death debt decide decision deduction deed defense define degree delay deliver delivery demand
    density dental dependent deposit describe desert design desire desk destination destroy destruction detail details
    detect develop development device dictionary difference different difficult digital dimension dinner direction
    director disaster discount discover discovery discuss disease dismissal dismissed dispute distance distant
    distribution district divide divided division divorce doctor document dog domestic dominant door double doubt
    downtime drama dream dress drink drive driver driving drop drought drug due during dust duty early earn earnings
    earth eastern easy economic economy edition editor education effect effective efficient effort elected elections
    electric electrical element elementary email emergency emotion emperor empire employee employees employer
    encourage enemy energy engine engineer engineering enormous enough enter enterprise entire entry environment
    environmental equal equipment equivalent error escape essence essential establish estimate ethical ethnic european
    event evidence evolution evolve exact examination example exceed excellent exception excess exchange exclude
    excuse executive exercise exist existence exit expand expansion expect expense expenses expensive experience
    experiment expert expire expired expiry explain explore explosion export exposition express expression extend
    extensive extent external extra extreme eye fable facile facility factor factory faculty failure fair false family
    famous fantasy farm father fatigue favour feature federal fee feedback fees female festival fever fewer fiber
    fiction field fighting figure file filing fill film filter final finance financial find finding finish fire firm
    fish fisher flag flat fleet flexible flight flood floor flow focus folder food forbidden force foreign forest
    forgot forgotten form formal formation former formula fortune forward found foundation founded fraction fragile
    framework france freedom freelance freight frequency frequent friday friend friendly frontier fruit fuel full
    function fund fundamental funding furniture gain galaxy garage garden gas gate gene general generation genetic
    gentle geography giant gift girl give glass global goal gold golden goods gouvernement government governor grade
    gradual graduate grammar grant graph gravity great greater greek green ground group growth guard guest guidance
    guide guilty habitat habitation half hand handbook handle happen happy harbour hard health hearing heart heat
    heating heavy height help helpdesk helpful heritage hero hidden high higher hire hiring historic historical
    history hold hole holiday holidays home hope horizon horse hospital host hotel hotline hour house household
    housekeeping housing human hundred hunting husband idea ideal identification identify identity ill illegal illness
    image immense impact imperial import importance important impose impossible impression improve inch include income
    incorporate increase independent indicate individual industrial industry infection inflation influence inform
    information initial injury inner innovation insect inside inspection instance instead institution instruction
    instrument insurance intellectual intelligence intense interaction interest internal international interpret
    intervention interview introduce invasion invention invest investigation investment invoice invoices involve iron
    island issue item january job jobs join joint journal journey justice justify keep key keyboard keys killed king
    kingdom kitchen know knowledge known label laboratory labour lack lake lamp land landlord language laptop laptops
    large largest laser late latitude launch law lawyer lead leader leadership leading league learn learning lease
    leather leave leaver left legend leisure lender length lesson letter level liability liberal liberty library
    licence license life light limit limits line linear link liquid list literature living load loan loans local
    location lock locker lodging logic logo logout london long look lord lose loss lost lot low lower lunch lung
    machine magazine magnetic magnitude mail mailing mainly maintenance major majority make male mammal manage manager
    managers managing manner manufacture manufacturer margin marine mark market marriage mass massive matching
    material maternity mathematics matter maximise maximum mayor meal meals mean meaning measure measurement
    mechanical mechanism medical medicine medieval meeting meetings melody member memory mental merchant message metal
    method middle migration milestone military mill mineral minimum minister minor minority minute missing mission
    mistake mixture mobile mode model modern module molecule moment monday money monitor mood moral mortality mortgage
    mostly mother motion motor mountain mouse mouth move movement multiple murder muscle music musical mystery name
    nation national native natural nature navy near negative neighbour neither network neutral newsletter night nobody
    noise normal northern notable notice notion novel nuance nuclear nucleus number numerous nurse object objection
    obtain obvious occasion occupation occur ocean offer office officer offices official old online open opening opera
    operate operation operator opinion opponent opposite option orange orbit order orders organ organic organisation
    organization origin original outage outcome output outside overdue overnight overtime owed owner ownership pacific
    package page paid pain paint painting pair palace panel panorama paper parallel parcel parent parents park parking
    parliament part partial participant particle particular partner party passage passenger passion passport password
    passwords past path patience patient pattern pause pay payment payments payroll payslip peace peak penalty pending
    people percent percentage perfect performance period permanent permission permit person personal perspective phase
    phenomenon philosophy phone phrase physical physics piano pick picture piece pile pilot place plan planet planning
    plant plastic plate play player poet poetry point poison police policies policy political politics pollution pool
    poor popular popularity population portion position positive possess possibility possible potential poverty power
    practice pratique precise precision predict prefer pregnant premises preparation presence present president press
    pressure prevent prevention previous price pricing primary prime prince principal principle printer prior priority
    prison private probability probably probation problem procedure process produce product production profession
    professional professor profit program programme progress progression prominent promise promote promotion proof
    proper property proportion propose proposition protection protein protest provide provided provider province
    psychology public publication publish pull pupil purchase purchases purpose push pyramid quality quarter quarterly
    queen question quick quit quite quote race radiation radical radio railway rain raise range rapid rate rates ratio
    ration reach reaction reactor read ready real reality realize reason reasonable rebel receipt receipts receive
    recent recession recognise recommend record recording records recover recruit recruitment recycling reduce
    reduction redundancy refer reference reform refugee refund refunds refuse regard regime region regional register
    regular regulations rehearsal reimbursed reimbursement reject relate related relation relationship relative
    release relevant reliable religion religious relocation remain remember reminder remote remove renew renewal rent
    rental repair repeat replace replacement report reporting represent representative reproduce republic reputation
    request requests required requirement requirements research reserve reset residence resident resign resignation
    resistance resolve resource respect respond response responsible rest restaurant restore restrict restroom result
    retention retire retirement return revenue reverse review revolt revolution reward rice rich ride right rights
    ring rise risk rival river road rock role romantic roof room rooms root rough round route routine royal rule rules
    rural sacred safe safety sail salaries salary sale sales salt sample sanction sand satellite satisfaction saturday
    saving schedule school science scientific scientist scope screen season seat second secret secretary section
    sector security seek segment select self sell senate sender sending senior sensation sense sentence separate
    sequence series serious servant service session settle settlement several severance severe sewage sexual shape
    share shared shareholder shares sharp sheet shelf shell shift shifts ship shipment shipping shock shoe shop
    shopping short shortage shot shoulder show shower shut sick sickness side sign signal signature signed significant
    signing silence silver similar simple simply since singer single sister site situation size skill skin sky sleep
    slow small smoking smooth social society soft software soil solar sold soldier solid solution solve song sound
    source southern soviet space speak special species specific spectrum speech speed spend spending spent spirit
    spiritual split spoken sport spouse spread spring square stability stable staff stage stairs stamp standard star
    start state statement station statistics statue status stay steam steel steps stock stolen stone stop storage
    store storm story strange strategy stream street strength stress strike strong structure struggle student studio
    study style subject subsidy substance success succession sudden sugar suggest suggestion sum summer sunday
    superior supervisor supplier suppliers supply support surface surgery surprise surround survey survive suspect
    suspension sustain sweet switch symbol sympathy symptom synthesis system systematic table tail take talent talking
    tank target taught tax taxes teach teacher team teams technical technique technology telephone telescope
    television temperature temple temporary tenant tend tension term terms terrible territory test text texture
    theater theatre theme theorem theory thermal thick thin thing think thousand threat threshold throne throughput
    throw thursday ticket tickets tide timesheet tissue title today tone tools top topic total touch tour tourism
    tourist toward tower town toxic track trade trading tradition traditional traffic tragedy train training
    transaction transfer transform transition translate translation transmission transport travel travelling treatment
    treaty tree trend trial triangle tribe tribute trip triumph troop trouble truck true trust tuesday turn turnover
    type typical ultimate unable uncertain understand unemployed unfair uniform union unique unit unity universal
    universe universities university unknown unpaid until unusual update upgrade upload urban usage use used useful
    user users usual utility vacation vaccination valid valley valuable value variable variation variety vary vast
    vehicle velocity vendor verb verse version vertical vessel victim victory view village violence violent virtue
    virus visible vision visit visite visitor visual vital voice volume volunteer vote voting voucher wage wages wait
    waiver walk warehouse warm warning warranty washing waste watch water wave weak wealth weapon wear weather website
    wedding wednesday weekend weekly weight welcome wellbeing west western whale wheat wheel white wide widely widow
    wife wifi wild wind window wine wing winter wire wise withdraw withdrawal withholding witness woman women wonder
    wood word work worker workers working workplace workshop world worse worst worth write writer writing wrong wrote
    yearly yellow yield young youth zero zone
    """.split()  # noqa: SIM905  # words, to be read and added to
)
